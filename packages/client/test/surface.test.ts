// Parts of the client that need no node: what it sends, and what it reports.
import { test } from 'tap'
import { z } from 'zod'
import { errorCodeOf } from '../src/consume/error-code.ts'
import { exponential, type Message, Rouse, RouseError } from '../src/index.ts'
import { testRouse } from '../src/testing/index.ts'
import { clientOf } from './support/cluster.ts'
import { scriptedServer } from './support/scripted-server.ts'

test('options of a queue are sent under the names and units of the API', async (t) => {
  const server = await scriptedServer(t, () => ({ status: 200, body: { options: {} } }))
  const queue = clientOf(t, server.url).queue('q')
  await queue.configure({
    lease: '1m',
    retry: { limit: 5, backoff: ['5s', 60_000] },
    ttl: '2h',
    retryDelay: '1s',
    dedupWindowSeconds: 60,
    ordering: 'none',
    maxSize: null,
  })
  await queue.configure({ retry: { backoff: exponential('5s', { max: '1h', jitter: true }) } })
  t.same(
    server.requests.map(({ body }) => body.options),
    [
      {
        leaseTime: 60,
        retryLimit: 5,
        retryBackoffMs: [5_000, 60_000],
        ttl: 7_200,
        retryDelay: 1_000,
        dedupWindowSeconds: 60,
        ordering: 'none',
        maxSize: null,
      },
      {
        retryBackoff: {
          type: 'exponential',
          baseMs: 5_000,
          factor: 2,
          maxMs: 3_600_000,
          jitter: true,
        },
      },
    ],
  )
})

test('a misspelt option of a push is refused before anything is sent', async (t) => {
  const rouse = testRouse()
  const queue = rouse.queue('q')
  await t.rejects(queue.push(1, { dely: '10m' } as object), {
    code: 'unknown_field',
    message: /unknown option dely; the options are partition, delay/,
  })
  await t.rejects(queue.pushMany([{ payload: 1, priorty: 1 } as never]), { code: 'unknown_field' })
  t.same(rouse.pushed('q'), [])
})

test('a signal ends the wait for a push, and removes the message if it was not sent', async (t) => {
  let answer: () => void = () => {}
  const server = await scriptedServer(t, async ({ body }) => {
    await new Promise<void>((resolve) => {
      answer = resolve
    })
    return {
      status: 201,
      body: body.items.map((_: unknown, index: number) => ({ index, status: 'queued' })),
    }
  })
  const queue = clientOf(t, server.url).queue('q')
  const first = queue.push(1)
  await new Promise((resolve) => setImmediate(resolve))
  const controller = new AbortController()
  const second = queue.push(2, { signal: controller.signal })
  const third = queue.push(3)
  controller.abort(new Error('too late'))
  await t.rejects(second, { message: 'too late' })
  await t.rejects(queue.push(4, { signal: AbortSignal.abort(new Error('before')) }), {
    message: 'before',
  })
  const poll = setInterval(() => answer(), 5)
  await Promise.all([first, third])
  clearInterval(poll)
  t.same(
    server.requests.flatMap(({ body }) =>
      body.items.map(({ payload }: Message & { payload: unknown }) => payload),
    ),
    [1, 3],
  )
})

test('the error code of a failure groups failures of one cause', async (t) => {
  const coded = Object.assign(new Error('x'), { code: 'ECONNREFUSED' })
  const lower = Object.assign(new Error('order 17 is "late"'), { code: 'no_constant' })
  class CardDeclined extends Error {
    override readonly name = 'CardDeclined'
  }
  for (const [error, code] of [
    [coded, 'ECONNREFUSED'],
    [lower, 'order * is *'],
    [new CardDeclined('no'), 'CardDeclined'],
    [new TypeError('x is not a function'), 'TypeError'],
    [new Error('user 0b5f7a52-7a3e-4ad2-9a39-0f5cf0d3d7aa has 3,5 items'), 'user * has * items'],
    [new Error('x'.repeat(100)), 'x'.repeat(64)],
    [new Error(''), 'Error'],
    ['thrown text 7', 'thrown text *'],
    [new RouseError('loop_left', 'text'), 'loop_left'],
  ] as const) {
    t.equal(errorCodeOf(error), code)
  }
})

test('without onError and logger, each distinct failure is one line on the console', async (t) => {
  const lines: string[] = []
  t.intercept(console, 'error', { value: (line: string) => lines.push(line) })
  const rouse = testRouse()
  const queue = rouse.queue('emails')
  await queue.configure({ ordering: 'none', retry: { limit: 2, backoff: 0 } })
  queue.work(async ({ data }) => {
    throw new Error(`${data} failed`)
  })
  await queue.push('one')
  await queue.push('two')
  await rouse.drain()
  t.equal(lines.length, 2)
  t.match(
    lines[0],
    /^rouse: queue emails, message .*, attempt 1: a handler failed: Error: one failed/,
  )
  await rouse.close()
})

test('a logger gets every failure, and onError replaces it', async (t) => {
  const logged: string[] = []
  const log = (line: string): void => void logged.push(line)
  const rouse = testRouse({ logger: { error: log, warn: log, info: log } })
  const errors: unknown[] = []
  const fail = async (): Promise<void> => {
    throw new Error('no')
  }
  await rouse.queue('a').configure({ retry: { limit: 1, backoff: 0 } })
  rouse.queue('a').work(fail)
  await rouse.queue('b').configure({ retry: { limit: 0 } })
  rouse.queue('b').work({ onError: (error) => errors.push(error) }, fail)
  await rouse.queue('a').push(1)
  await rouse.queue('b').push(1)
  await rouse.drain()
  t.equal(logged.length, 2)
  t.equal(errors.length, 1)
  await rouse.close()
})

test('a schema checks payloads at the push and before the handler, and infers their types', async (t) => {
  const emails = z.object({ to: z.string(), at: z.coerce.date() })
  const rouse = testRouse({ schemas: { emails }, logger: { error() {}, warn() {}, info() {} } })
  const queue = rouse.queue('emails')
  await t.rejects(queue.push({ to: 1, at: new Date(0) } as never), {
    code: 'invalid_payload',
    errors: [{ field: 'payload.to' }],
  })
  const seen: string[] = []
  queue.work(async ({ data }) => void seen.push(`${data.to} ${data.at.getTime()}`))
  await queue.push({ to: 'ann', at: new Date(7) })
  await rouse.drain()
  t.same(seen, ['ann 7'])
  await rouse.close()
})

test('a delivered message that does not match its schema becomes a dead letter', async (t) => {
  const errors: unknown[] = []
  const schemas: Record<string, z.ZodType> = {}
  const rouse = testRouse({ schemas })
  const queue = rouse.queue('emails')
  await queue.push({ to: 1 })
  schemas.emails = z.object({ to: z.string() })
  queue.work({ onError: (error) => errors.push(error) }, async () => t.fail('not handled'))
  await rouse.drain()
  t.match(errors, [{ code: 'invalid_payload' }])
  t.match(await rouse.deadLetters.errors(), [{ errorCode: 'invalid_payload', count: 1 }])
  await rouse.close()
})

test('await using closes the client', async (t) => {
  const rouse = new Rouse({ urls: 'http://127.0.0.1:1' })
  await rouse[Symbol.asyncDispose]()
  await t.rejects(rouse.queue('q').push(1), { code: 'closed' })
})
