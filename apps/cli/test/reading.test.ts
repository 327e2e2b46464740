// The verbs that read messages without leasing them: messages, tail, why, dlq.
import { spawn } from 'node:child_process'
import { createInterface } from 'node:readline'
import { test } from 'tap'
import { sharedNode, unique } from './support/node.ts'
import { bin, plain, rouse, rouseOnTerminal, terminalMissing } from './support/rouse.ts'

const node = await sharedNode()
const push = (...items: object[]) => node.call('POST', '/api/v1/push', { items })
const env = { ROUSE_URL: node.url }
const timeout = 120_000
const skip = await terminalMissing()

async function deadQueue(): Promise<string> {
  const queue = unique('dead')
  await node.call('POST', '/api/v1/configure', { queue, options: { retryLimit: 0 } })
  await push({ queue, payload: { n: 1 } }, { queue, payload: { n: 2 } })
  const { messages } = await node.call('GET', `/api/v1/pop/queue/${queue}?batch=2`)
  const failure = { status: 'failed', error: 'it broke', errorCode: 'E_BROKEN' }
  for (const { receipt } of messages) {
    await node.call('POST', '/api/v1/ack', { receipt, ...failure })
  }
  return queue
}

test('messages and why print JSON in a pipe', { timeout }, async (t) => {
  const queue = unique()
  await push({ queue, payload: { n: 1 } })
  const messages = JSON.parse((await rouse(['messages', queue], { env })).out)
  t.match(messages, { messages: [{ status: 'pending', data: { n: 1 } }] })
  await node.call('POST', `/api/v1/queues/${queue}/pause`)
  const why = await rouse(['why', queue], { env })
  t.match(JSON.parse(why.out).reasons[0], { code: 'paused', text: String })
  const one = await rouse(['why', '--message', messages.messages[0].id], { env })
  t.match(JSON.parse(one.out), { queue, steps: [{ step: 'committed' }], summary: /paused/ })
  t.match(await rouse(['why'], { env }), { code: 1, err: /name a queue, or a message/ })
})

test('dlq lists, counts and redrives dead letters', { timeout }, async (t) => {
  const queue = await deadQueue()
  const of = async (...args: string[]) => JSON.parse((await rouse(['dlq', ...args], { env })).out)
  t.match(await of('list', queue), { deadLetters: [{ errorCode: 'E_BROKEN' }, {}] })
  t.match(await of('errors', queue), { errors: [{ errorCode: 'E_BROKEN', count: 2 }] })
  t.match(await of('redrive', queue, '--dry-run'), { dryRun: true, total: 2 })
  const redrive = await of('redrive', queue, '--error', 'E_BROKEN')
  t.match(redrive, { total: 2, state: String })
  t.match(await of('status', redrive.id), { queue, total: 2 })
  const back = await rouse(['pop', queue, '--wait', '10', '-n', '2', '--ack'], { env })
  t.match(JSON.parse(back.out).messages, [{ data: { n: 1 } }])
})

test('messages, why and dlq print tables and text on a terminal', { timeout, skip }, async (t) => {
  const queue = await deadQueue()
  const shown = async (...args: string[]) => plain((await rouseOnTerminal(args, { env })).out)
  t.match(await shown('dlq', 'list', queue), /^ID +GROUP +TRIES +DIED +ERROR.*E_BROKEN: it broke/s)
  t.match(await shown('dlq', 'errors', queue), / 2 .* E_BROKEN +it broke/)
  t.match(await shown('dlq', 'redrive', queue, '--dry-run'), /^would redrive 2/)
  t.match(await shown('messages', queue), /^ID +STATE/)
  t.match(await shown('why', queue), /dead/)
  const { messages } = await node.call('GET', `/api/v1/messages?queue=${queue}`)
  t.match(await shown('why', '--message', messages[0].id), /committed.*failed +attempt 1/s)
})

test('a terminal of unknown width gets whole tables', { timeout, skip }, async (t) => {
  const size = { columns: 0, rows: 0 }
  const shown = plain((await rouseOnTerminal(['nodes'], { env, size })).out)
  t.match(shown, /^NODE +STATE +URL.*WAKES SENT +RECEIVED\r?\n.*alive +http/)
})

test('tail prints new messages, one document per line, and takes none', { timeout }, async (t) => {
  const queue = unique()
  await push({ queue, payload: 'before' })
  const child = spawn(process.execPath, [bin, 'tail', queue, '--all', '--url', node.url])
  t.teardown(() => child.kill())
  const lines: { data: unknown }[] = []
  let next: (() => void) | undefined
  createInterface({ input: child.stdout }).on('line', (line) => {
    lines.push(JSON.parse(line))
    next?.()
  })
  const untilLines = async (count: number): Promise<void> => {
    while (lines.length < count) await new Promise<void>((resolve) => (next = resolve))
  }
  await untilLines(1)
  await push({ queue, payload: 'after' })
  await untilLines(2)
  t.match(lines, [{ data: 'before' }, { data: 'after' }])
  t.equal((await node.call('GET', `/api/v1/pop/queue/${queue}?batch=2`)).messages.length, 2)
})
