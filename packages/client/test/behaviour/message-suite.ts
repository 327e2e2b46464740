// What a client promises about single messages, on both implementations: options of their own, unique keys,
// results, progress, cancelling, waiting.
import { test } from 'tap'
import type { Message, MessageInfo, Rouse } from '../../src/index.ts'
import { unique } from '../support/cluster.ts'
import { collect, dataOf, type OpenSubject, type Subject, until } from './subject.ts'

export function runMessageSuite(name: string, open: OpenSubject): void {
  test(`${name}: a message is found by the id of its push, in every state`, async (t) => {
    const subject = await open(t)
    const { rouse } = subject
    const queue = rouse.queue(unique())
    await queue.configure({ retry: { limit: 1, backoff: '1h' } })
    const { id } = await queue.push({ n: 1 }, { headers: { h: 1 }, delay: '1h' })
    t.match(await rouse.messages.get(id), { id, state: 'scheduled', data: { n: 1 }, groups: [] })
    await rouse.messages.runNow(id)
    const [first] = await popOne(subject, queue, { consumer: 'shop-3', lease: '5m' })
    const leased = { consumerGroup: 'default', state: 'leased', attempts: 1, consumer: 'shop-3' }
    t.match(await rouse.messages.get(id), { state: 'leased', headers: { h: 1 }, groups: [leased] })
    await queue.fail(first as Message, Object.assign(new Error('no'), { code: 'EFAIL' }))
    const failed = { errorCode: 'EFAIL', errorMessage: 'no', consumer: 'shop-3' }
    t.match(await rouse.messages.get(id), {
      state: 'retrying',
      groups: [{ errorCode: 'EFAIL' }],
      attempts: [failed],
    })
    await rouse.messages.runNow(id)
    const [second] = await popOne(subject, queue)
    t.equal(second?.attempt, 2)
    await queue.fail(second as Message, new Error('again'))
    t.equal((await rouse.messages.get(id)).state, 'dead')
    await t.rejects(rouse.messages.get('0'), { code: 'not_found' })
    await t.rejects(rouse.messages.runNow(id), { code: 'not_scheduled' })
  })

  test(`${name}: messages are listed by their state`, async (t) => {
    const { rouse } = await open(t)
    const queue = rouse.queue(unique())
    const later = await queue.push('later', { delay: '1h' })
    const ready = await queue.push('ready', { partition: 'a' })
    const list = async (state: 'scheduled' | 'ready' | 'leased'): Promise<string[]> =>
      (await collect(rouse.messages.list({ queue: queue.name, state }))).map(({ id }) => id)
    t.same(await list('scheduled'), [later.id])
    t.same(await list('ready'), [ready.id])
    await queue.pop()
    t.same(await list('ready'), [])
    t.same(await list('leased'), [ready.id])
  })

  test(`${name}: a message is cancelled unless a consumer has been given it`, async (t) => {
    const { rouse } = await open(t)
    const queue = rouse.queue(unique())
    const [later, ready, held] = await queue.pushMany([
      { payload: 'later', delay: '1h' },
      { payload: 'ready', partition: 'b' },
      { payload: 'held', partition: 'a' },
    ])
    const [message] = await queue.pop({ partition: 'a', lease: '5m' })
    for (const one of [later, ready, later]) await rouse.messages.cancel(one?.id ?? '')
    t.equal((await rouse.messages.get(later?.id ?? '')).state, 'cancelled')
    t.equal((await rouse.messages.get(ready?.id ?? '')).state, 'cancelled')
    await t.rejects(rouse.messages.cancel(held?.id ?? ''), { code: 'message_leased', status: 409 })
    await queue.ack(message as Message)
    await t.rejects(rouse.messages.cancel(held?.id ?? ''), { code: 'message_finished' })
    t.same(await queue.pop({ batch: 9, partitions: 9 }), [], 'nothing is left')
  })

  test(`${name}: a cancelled message keeps its dedupe key until a purge, and frees its unique key`, async (t) => {
    const { rouse } = await open(t)
    for (const delay of ['1h', 0] as const) {
      const queue = rouse.queue(unique())
      const options = { partition: 'a', unique: { key: 'u' } }
      const first = await queue.push(1, { ...options, delay, dedupeKey: 'k' })
      await rouse.messages.cancel(first.id)
      const late = await queue.push(1, { ...options, dedupeKey: 'k' })
      t.match(late, { id: first.id, status: 'duplicate' })
      t.match(await queue.push(2, options), { status: 'queued' })
      await queue.purge()
      await t.rejects(rouse.messages.get(first.id), { code: 'not_found' })
      t.match(await queue.push(3, { ...options, dedupeKey: 'k' }), { status: 'queued' })
      t.same(dataOf(await queue.pop({ batch: 9 })), [3])
    }
  })

  test(`${name}: messages are cancelled by a filter, which may only count`, async (t) => {
    const { rouse } = await open(t)
    const queue = rouse.queue(unique())
    await queue.pushMany([1, 2, 3].map((payload) => ({ payload, delay: '1h' as const })))
    await queue.push('kept')
    const filter = { queue: queue.name, state: 'scheduled' } as const
    t.same(await rouse.messages.cancelMany(filter, { dryRun: true }), { matched: 3, cancelled: 0 })
    t.same(await rouse.messages.cancelMany(filter), { matched: 3, cancelled: 3 })
    t.same(await rouse.messages.cancelMany(filter), { matched: 0, cancelled: 0 })
    t.same(dataOf(await queue.pop({ batch: 9 })), ['kept'])
  })

  test(`${name}: a unique key has one message at a time`, async (t) => {
    const { rouse } = await open(t)
    const queue = rouse.queue(unique())
    const key = 'welcome-42'
    const first = await queue.push(1, { unique: { key } })
    t.match(await queue.push(2, { unique: { key } }), { id: first.id, status: 'duplicate' })
    const replaced = await queue.push(3, { unique: { key, onConflict: 'replace' } })
    t.match(replaced, { id: first.id, status: 'replaced' })
    await t.rejects(queue.push(4, { unique: { key, onConflict: 'reject' } }), {
      code: 'unique_conflict',
      status: 409,
    })
    t.match(await rouse.messages.get(first.id), { unique: { key, scope: 'queue', held: true } })
    const [message] = await queue.pop()
    t.equal(message?.data, 3)
    const started = await queue.push(5, { unique: { key, onConflict: 'replace' } })
    t.equal(started.status, 'queued', 'a consumer has been given the first one')
    await queue.ack(message as Message)
    const [next] = await queue.pop()
    await queue.ack(next as Message)
    t.match(await queue.push(6, { unique: { key } }), { status: 'queued' }, 'it has ended')
  })

  test(`${name}: a unique key may last for a time, and count in a partition`, async (t) => {
    const subject = await open(t)
    const queue = subject.rouse.queue(unique())
    const forAWhile = { key: 'k', until: { window: '700ms' } } as const
    await queue.push(1, { unique: forAWhile })
    const [message] = await queue.pop()
    await queue.ack(message as Message)
    t.match(await queue.push(2, { unique: forAWhile }), { status: 'duplicate' })
    await subject.pass(900)
    t.match(await queue.push(3, { unique: forAWhile }), { status: 'queued' })
    const inPartition = { key: 'p', scope: 'partition' } as const
    await queue.push(4, { partition: 'a', unique: inPartition })
    t.match(await queue.push(5, { partition: 'b', unique: inPartition }), { status: 'queued' })
    t.match(await queue.push(6, { partition: 'a', unique: inPartition }), { status: 'duplicate' })
  })

  test(`${name}: messages of a higher priority are delivered first`, async (t) => {
    const { rouse } = await open(t)
    const queue = rouse.queue(unique())
    for (const priority of [0, 5, 9, 1, 5]) await queue.push(priority, { priority })
    const order: unknown[] = []
    for (let i = 0; i < 5; i += 1) order.push(...dataOf(await queue.pop({ autoAck: true })))
    t.same(order, [9, 5, 5, 1, 0])
    await t.rejects(queue.push(1, { priority: 1, partition: 'p' }), {
      code: 'invalid_request',
      status: 400,
    })
  })

  test(`${name}: a message may have its own retries`, async (t) => {
    const subject = await open(t)
    const queue = subject.rouse.queue(unique())
    await queue.configure({ retry: { limit: 5, backoff: '1h' } })
    const own = { retryLimit: 1, retryBackoff: ['50ms'] } as const
    const { id } = await queue.push('own', own)
    t.match(await subject.rouse.messages.get(id), { retryLimit: 1, retryBackoffMs: [50] })
    const attempts: number[] = []
    queue.work({ onError: () => {} }, async (message) => {
      attempts.push(message.attempt)
      throw new Error('no')
    })
    await untilState(subject, id, 'dead')
    t.same(attempts, [1, 2])
  })

  test(`${name}: a message is not delivered after its time to live`, async (t) => {
    const subject = await open(t)
    const queue = subject.rouse.queue(unique())
    await queue.push('short', { ttl: '300ms' })
    await queue.push('long', { ttl: '1h' })
    await subject.pass(600)
    t.same(dataOf(await queue.pop({ batch: 9 })), ['long'])
    t.same(await collect(subject.rouse.deadLetters.list({ queue: queue.name })), [])
  })

  test(`${name}: what a handler returns is the result, if the queue keeps results`, async (t) => {
    const subject = await open(t)
    const { rouse } = subject
    const keeping = rouse.queue(unique())
    await keeping.configure({ history: 'all' })
    const plain = rouse.queue(unique())
    const results: unknown[] = []
    for (const queue of [keeping, plain]) {
      queue
        .work(async ({ data }) => ({ twice: Number(data) * 2 }))
        .on('completed', ({ result }) => results.push(result))
    }
    const kept = await ended(subject, keeping, 21)
    t.match(kept, { state: 'completed', result: { twice: 42 }, completedAt: String })
    t.equal((await ended(subject, plain, 21)).result, null)
    t.same(results, [{ twice: 42 }, undefined])
  })

  test(`${name}: the worker may decide about results, and an ack may carry one`, async (t) => {
    const subject = await open(t)
    const { rouse } = subject
    const [always, never, manual] = [unique(), unique(), unique()].map((one) => rouse.queue(one))
    await never?.configure({ history: 'all' })
    always?.work({ results: true }, async () => 'kept')
    never?.work({ results: false }, async () => 'dropped')
    manual?.work(async (_message, context) => {
      await context.ack({
        result: [1, 2],
        push: [{ queue: `${manual.name}-next`, payload: 'pushed' }],
      })
    })
    t.equal((await ended(subject, always, 1)).result, 'kept')
    t.equal((await ended(subject, never, 1)).result, null)
    t.same((await ended(subject, manual, 1)).result, [1, 2])
    t.same(dataOf(await rouse.queue(`${manual?.name}-next`).pop()), ['pushed'])
    const { id } = await rouse.queue(unique()).push(1)
    const { queue } = await rouse.messages.get(id)
    const [message] = await rouse.queue(queue).pop()
    await rouse.queue(queue).ack(message as Message, { result: { by: 'hand' } })
    t.same((await rouse.messages.get(id)).result, { by: 'hand' })
  })

  test(`${name}: a result that cannot be kept fails its attempt and no other`, async (t) => {
    const subject = await open(t)
    const queue = subject.rouse.queue(unique())
    await queue.configure({ history: 'all', retry: { limit: 0 } })
    const errors: unknown[] = []
    const pushed = await queue.pushMany(
      ['x', 'small', 1n.toString()].map((payload) => ({ payload })),
    )
    queue.work({ onError: (error) => errors.push(error) }, async ({ data }) => {
      if (data === 'x') return 'x'.repeat(70_000)
      return data === '1' ? { n: 1n } : data
    })
    const states: string[] = []
    for (const { id } of pushed) states.push((await untilEnded(subject, id)).state)
    t.same(states, ['dead', 'completed', 'dead'])
    const letters = await subject.rouse.deadLetters.errors({ queue: queue.name })
    const codes = letters.map(({ errorCode }) => String(errorCode))
    t.same(codes.toSorted(), ['invalid_payload', 'payload_too_large'])
    t.equal(errors.length, 2)
  })

  test(`${name}: progress is shown until the next report, and needs the lease`, async (t) => {
    const subject = await open(t)
    const { rouse } = subject
    const queue = rouse.queue(unique())
    const { id } = await queue.push(1)
    const seen: unknown[] = []
    queue.work(async (_message, context) => {
      for (const percent of [40, 80]) {
        await context.progress({ percent })
        seen.push((await rouse.messages.get(id)).progress)
      }
    })
    await until(subject, () => seen.length === 2)
    t.same(seen, [{ percent: 40 }, { percent: 80 }])
    const other = rouse.queue(unique())
    await other.push(1)
    const [message] = await other.pop()
    await other.progress(message as Message, 0.5)
    t.equal((await rouse.messages.get(message?.id ?? '')).progress, 0.5)
    await other.ack(message as Message)
    await t.rejects(other.progress(message as Message, 1), { code: 'lease_lost', status: 409 })
  })

  test(`${name}: a producer waits for the end of its message`, async (t) => {
    const subject = await open(t)
    const { rouse } = subject
    const queue = rouse.queue(unique())
    const [done, gone] = await queue.pushMany([
      { payload: 'done', partition: 'a' },
      { payload: 'gone', delay: '1h' },
    ])
    t.match(await rouse.messages.wait(done?.id ?? '', { timeout: 20 }), { state: 'ready' })
    const waiting = rouse.messages.wait(done?.id ?? '', {
      timeout: '20s',
      consumerGroup: 'default',
    })
    queue.work({ results: true }, async ({ data }) => `${String(data)}!`)
    t.match(await waiting, { state: 'completed', result: 'done!' })
    const cancelled = rouse.messages.wait(gone?.id ?? '', { timeout: '20s' })
    await rouse.messages.cancel(gone?.id ?? '')
    t.match(await cancelled, { state: 'cancelled' })
  })

  test(`${name}: a signal ends the wait for any call`, async (t) => {
    const { rouse } = await open(t)
    const queue = rouse.queue(unique())
    const { id } = await queue.push(1)
    const [message] = (await queue.pop()) as [Message]
    const signal = AbortSignal.abort(new Error('too late'))
    const calls: (() => Promise<unknown>)[] = [
      () => queue.push(1, { signal }),
      () => queue.pop({ signal }),
      () => queue.ack(message, { signal }),
      () => queue.retry(message, { signal }),
      () => queue.fail(message, new Error('no'), { signal }),
      () => queue.deadLetter(message, 'no', { signal }),
      () => queue.progress(message, 1, { signal }),
      () => queue.extend(message, '1m', { signal }),
      () => queue.release(message, { signal }),
      () => queue.configure({}, { signal }),
      () => queue.info({ signal }),
      () => queue.pause({ signal }),
      () => rouse.messages.get(id, { signal }),
      () => rouse.messages.wait(id, { signal }),
      () => rouse.messages.cancel(id, { signal }),
      () => collect(rouse.messages.list({ queue: queue.name }, { signal })),
      () => rouse.schedules.get('none', { signal }),
      () => collect(rouse.groups.list({ signal })),
      () => rouse.deadLetters.redrive({ queue: queue.name }, { signal }),
    ]
    for (const call of calls) {
      await t.rejects(async () => void (await call()), { message: 'too late' }, String(call))
    }
    await queue.ack(message)
  })
}

type AnyQueue = ReturnType<Rouse['queue']>

/** Pops one message, which may have to become due first. */
async function popOne(
  subject: Subject,
  queue: AnyQueue,
  options: Parameters<AnyQueue['pop']>[0] = {},
): Promise<Message[]> {
  let found: Message[] = []
  await until(subject, async () => {
    found = await queue.pop(options)
    return found.length > 0
  })
  return found
}

/** Pushes a message and waits for its end. */
async function ended(
  subject: Subject,
  queue: AnyQueue | undefined,
  payload: unknown,
): Promise<MessageInfo> {
  const { id } = (await queue?.push(payload)) ?? { id: '' }
  return await untilEnded(subject, id)
}

async function untilEnded({ rouse }: Subject, id: string): Promise<MessageInfo> {
  return await rouse.messages.wait(id, { timeout: '20s', consumerGroup: 'default' })
}

async function untilState(subject: Subject, id: string, state: string): Promise<void> {
  await until(subject, async () => (await subject.rouse.messages.get(id)).state === state)
}
