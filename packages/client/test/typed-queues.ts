// Code that the compiler must accept or reject, checked by `typed-queues.test.ts`. Nothing here runs.
import type { ErrorCode as ServerErrorCode } from '@rouse/protocol'
import { type ErrorCode, Rouse } from '../src/index.ts'

interface Queues {
  emails: { to: string; template: string }
  receipts: { id: string }
}

export async function typed(rouse: Rouse<Queues>): Promise<void> {
  const emails = rouse.queue('emails')
  await emails.push({ to: 'ann', template: 'welcome' }, { delay: '10m' })
  // @ts-expect-error: a field is missing
  await emails.push({ to: 'ann' })
  // @ts-expect-error: a field has another type
  await emails.push({ to: 'ann', template: 7 })
  // @ts-expect-error: no such queue
  rouse.queue('letters')
  // @ts-expect-error: no such unit
  await emails.push({ to: 'ann', template: 'welcome' }, { delay: '10 minutes' })
  // @ts-expect-error: every message of pushMany is checked
  await emails.pushMany([{ payload: { to: 'ann', template: 'welcome' } }, { payload: { to: 1 } }])

  emails.group('mailer').work({ concurrency: 20 }, async (message, context) => {
    const to: string = message.data.to
    // @ts-expect-error: no such field
    const from = message.data.from
    await context.ack({ push: [{ queue: 'receipts', payload: { id: from ?? to } }] })
    // @ts-expect-error: the payload of another queue
    await context.ack({ push: [{ queue: 'receipts', payload: { to, template: '' } }] })
    // @ts-expect-error: no such queue
    await context.ack({ push: [{ queue: 'letters', payload: {} }] })
  })
  emails.workBatch({ batch: 10 }, (messages) => messages.map(({ data }) => data.template))
  for await (const message of emails.messages()) {
    const template: string = message.data.template
    await message.deadLetter(template)
  }
}

/** Without declared queues any payload is accepted. */
export async function untyped(): Promise<void> {
  const rouse = new Rouse({ urls: 'http://127.0.0.1:4600' })
  await rouse.queue('anything').push([1, { two: null }])
  rouse.queue('anything').work(({ data }) => data.whatever.it.is)
}

/** The code itself, or `never` if the type is just `string`. */
type Spelled<Code> = Code extends string ? (string extends Code ? never : Code) : never
type Missing = Exclude<ServerErrorCode, Spelled<ErrorCode>>
export const noneMissing: [Missing] extends [never] ? true : Missing = true
