import {
  ack,
  ackIn,
  cancelMessage,
  type Executor,
  enqueue,
  messageById,
  promoteDue,
  push,
  release,
  runNow,
  seek,
  stats,
} from '@rouse/storage'
import { type Test, test } from 'tap'
import { newId } from '../support/new-id.ts'
import {
  finish,
  item,
  message,
  openStorage,
  payloads,
  type Storage,
  start,
} from '../support/storage.ts'

/** A storage with a frozen clock, and a group `g` that has seen the queue. */
async function opened(t: Test, options: Record<string, unknown> = {}) {
  const storage = await openStorage(t)
  const { freezeClock, pool, set } = storage
  await freezeClock(start)
  await set('q', options)
  const add = async (...values: readonly unknown[]): Promise<string[]> => {
    const items = values.map((value) => message('q', 'p', value, { id: newId() }))
    return (await push(pool, items)).items.map(({ messageId }) => messageId)
  }
  return { ...storage, add, cancel: (id: string, on: Executor = pool) => cancelMessage(on, id) }
}

/** Everything that the group still gets, with the ids. */
async function drained({ take, pool }: Pick<Storage, 'take' | 'pool'>, group = 'g') {
  const came: unknown[] = []
  for (;;) {
    const popped = await take('q', { batch: 10, partitions: 10, group })
    if (popped.status === 'empty') return came
    came.push(...payloads(popped))
    for (const lease of popped.leases) await finish(pool, lease)
  }
}

for (const ordering of ['partition', 'none']) {
  test(`a cancelled message is never delivered, and all others are (ordering ${ordering})`, async (t) => {
    const storage = await opened(t, { ordering })
    const { add, cancel, pool, take } = storage
    await take('q')
    const ids = await add(1, 2, 3, 4, 5)
    for (const i of [0, 2, 4]) t.match(await cancel(ids[i] as string), { outcome: 'cancelled' })
    t.match(await cancel(ids[0] as string), { outcome: 'cancelled' }, 'also when repeated')
    t.match(await messageById(pool, ids[2] as string), {
      cancelledAt: new Date(start),
      groups: [{ status: 'cancelled' }],
    })
    t.equal((await stats(pool))[0]?.groups[0]?.pending, 2)
    t.same(await drained(storage), [2, 4])
    t.same(await drained(storage, 'later'), [2, 4], 'also not to a group that begins later')
    t.match(await cancel(ids[1] as string), { outcome: 'finished' })
    await seek(pool, { queue: 'q', group: 'g', to: new Date(0) })
    t.same(await drained(storage), [2, 4], 'also not after a seek')
  })
}

test('a pop of one message passes cancelled ones at the front', async (t) => {
  const { add, cancel, lane, take } = await opened(t)
  await take('q')
  const ids = await add(1, 2, 3)
  for (const id of ids.slice(0, 2)) await cancel(id)
  t.same(payloads(await take('q')), [3])
  t.equal((await lane()).next, '4')
})

test('a lane of which everything was cancelled is empty', async (t) => {
  const { add, cancel, lane, take } = await opened(t)
  await take('q')
  for (const id of await add(1, 2)) await cancel(id)
  t.match(await take('q'), { status: 'empty' })
  t.match(await lane(), { next: '3', ready: false })
})

test('a release of messages around a cancelled one does not bring it back', async (t) => {
  const storage = await opened(t)
  const { add, cancel, pool, take } = storage
  await take('q')
  const ids = await add(1, 2, 3)
  await cancel(ids[1] as string)
  const { leases } = await take('q', { batch: 3 })
  t.same(payloads({ leases }), [1, 3])
  await release(pool, [leases[0]?.leaseId as string])
  t.same(new Set(await drained(storage)), new Set([1, 3]))
})

test('what a group holds or has ended is not cancelled', async (t) => {
  const { add, advanceClock, begin, cancel, lease, pool, take } = await opened(t)
  await take('q')
  const [held, done, dead] = (await add(1, 2, 3)) as [string, string, string]
  const first = await lease('q', { batch: 3, leaseMs: 60_000 })
  for (const id of [held, done, dead]) {
    t.same(await cancel(id), { outcome: 'leased', leaseExpiresAtMs: start + 60_000 })
  }
  const consumer = await begin()
  await ackIn(consumer, first.leaseId, { partitionId: first.partitionId, seq: 2 })
  t.match(await cancel(done), { outcome: 'leased' }, 'the transaction of the consumer is open')
  await consumer.query('commit')
  t.same(await cancel(done), { outcome: 'finished' })
  await ack(pool, [item(first, 2, 'dlq')])
  t.same(await cancel(dead), { outcome: 'finished' })
  await advanceClock(60_000)
  t.match(await cancel(held), { outcome: 'leased' }, 'until the lease is reaped')
  t.same(await cancel('5b1d7c1e-8a34-4f0e-9d52-6a1f0c9d2e10'), { outcome: 'not_found' })
})

test('a failed message that is cancelled no longer holds its lane', async (t) => {
  const storage = await opened(t, { retryBackoffMs: [60_000] })
  const { add, cancel, lane, lease, pool, rows, take } = storage
  await take('q')
  const [failed] = (await add(1, 2)) as [string]
  await ack(pool, [item(await lease('q'), 0, 'failed')])
  t.not((await lane()).blocked_until, null)
  t.match(await cancel(failed), {
    outcome: 'cancelled',
    woken: [{ queue: 'q', partition: 'p', group: 'g' }],
  })
  t.equal((await lane()).blocked_until, null)
  t.same(await rows('select from rouse.redeliveries'), [])
  t.same(await drained(storage), [2])
})

test('a scheduled message is cancelled, and shown as that', async (t) => {
  const storage = await opened(t)
  const { advanceClock, cancel, pool, rows } = storage
  const later = message('q', 'p', 1, { id: newId(), delayMs: 5_000 })
  const pushed = (await push(pool, [later])).items[0]?.messageId as string
  const enqueued = await enqueue(pool, { queue: 'q', payload: '2', delayMs: 5_000 })
  for (const id of [pushed, enqueued]) {
    t.same(await cancel(id), { outcome: 'cancelled', woken: [] })
    t.same(await cancel(id), { outcome: 'cancelled', woken: [] }, 'also when repeated')
    t.match(await messageById(pool, id), { id, cancelledAt: new Date(start), seq: null })
  }
  t.same(await rows('select from rouse.scheduled'), [])
  await advanceClock(10_000)
  await promoteDue(pool)
  t.same(await drained(storage), [])
})

for (const barrier of ['pop-lane-locked', 'pop-lane-offered', 'pop-lane-leased']) {
  test(`a cancel waits for a pop at ${barrier}, and finds the message leased`, async (t) => {
    const { add, armBarrier, cancel, take, waiting } = await opened(t)
    await take('q')
    const [id] = (await add(1)) as [string]
    const popping = await armBarrier(barrier)
    const popped = take('q')
    await popping.reached()
    const cancelled = cancel(id)
    await waiting()
    await popping.release()
    t.same(payloads(await popped), [1])
    t.match(await cancelled, { outcome: 'leased' })
  })
}

test('a pop beside a cancel that holds the lane does not get the message', async (t) => {
  const storage = await opened(t)
  const { add, armBarrier, cancel, take } = storage
  await take('q')
  const [id] = (await add(1, 2)) as [string]
  const cancelling = await armBarrier('cancel-locked')
  const cancelled = cancel(id)
  await cancelling.reached()
  t.match(await take('q'), { status: 'contended' })
  await cancelling.release()
  t.match(await cancelled, { outcome: 'cancelled' })
  t.same(await drained(storage), [2])
})

test('the first pop of a new group waits for a cancel, and does not get the message', async (t) => {
  const storage = await opened(t)
  const { add, armBarrier, cancel, take, waiting } = storage
  const [id] = (await add(1, 2)) as [string]
  const cancelling = await armBarrier('cancel-locked')
  const cancelled = cancel(id)
  await cancelling.reached()
  const first = take('q', { group: 'new', batch: 5 })
  await waiting()
  await cancelling.release()
  t.match(await cancelled, { outcome: 'cancelled' })
  t.same(payloads(await first), [2])
})

test('a cancel that meets a promotion finds the message in the log', async (t) => {
  const storage = await opened(t)
  const { advanceClock, armBarrier, cancel, pool } = storage
  const later = message('q', 'p', 1, { id: newId(), delayMs: 1_000 })
  const id = (await push(pool, [later])).items[0]?.messageId as string
  await advanceClock(1_000)
  const promoting = await armBarrier('promote-taken')
  const promoted = promoteDue(pool)
  await promoting.reached()
  await t.rejects(cancel(id), { code: 'RS001' }, 'the call is repeated')
  await promoting.release()
  await promoted
  t.match(await cancel(id), { outcome: 'cancelled' })
  t.same(await drained(storage), [])
})

test('a promotion passes a scheduled message that is being cancelled', async (t) => {
  const storage = await opened(t)
  const { advanceClock, armBarrier, cancel, pool } = storage
  const pushed = await push(
    pool,
    [1, 2].map((value) => message('q', 'p', value, { id: newId(), delayMs: 1_000 })),
  )
  await advanceClock(1_000)
  const cancelling = await armBarrier('cancel-scheduled-locked')
  const cancelled = cancel(pushed.items[0]?.messageId as string)
  await cancelling.reached()
  await promoteDue(pool)
  t.same(await drained(storage), [2])
  await cancelling.release()
  t.match(await cancelled, { outcome: 'cancelled' })
  await promoteDue(pool)
  t.same(await drained(storage), [])
})

test('run-now makes a scheduled message and a retry due, and nothing else', async (t) => {
  const storage = await opened(t, { retryBackoffMs: [60_000] })
  const { add, lease, pool, take } = storage
  await take('q')
  const later = message('q', 'p', 'later', { id: newId(), delayMs: 60_000 })
  const scheduled = (await push(pool, [later])).items[0]?.messageId as string
  t.same(await runNow(pool, scheduled), { outcome: 'scheduled' })
  await promoteDue(pool)
  t.same(await drained(storage), ['later'])
  t.same(await runNow(pool, scheduled), { outcome: 'not_scheduled' })
  const [failing] = (await add('failing', 'behind')) as [string]
  t.same(await runNow(pool, failing), { outcome: 'not_scheduled' })
  await ack(pool, [item(await lease('q'), 0, 'failed')])
  t.match(await runNow(pool, failing), {
    outcome: 'retrying',
    woken: [{ group: 'g', partition: 'p' }],
  })
  t.same(await drained(storage), ['failing', 'behind'])
  t.same(await runNow(pool, newId()), { outcome: 'not_found' })
})

test('an independent message is cancelled, also behind one that waits for its retry', async (t) => {
  const { cancel, lease, pool, take } = await opened(t, {
    ordering: 'keyed',
    retryBackoffMs: [60_000],
  })
  await take('q')
  const pushed = await push(
    pool,
    ['1', '2', '3'].map((payload) => ({ queue: 'q', id: newId(), payload })),
  )
  await ack(pool, [item(await lease('q'), 0, 'failed')])
  t.match(await cancel(pushed.items[1]?.messageId as string), { outcome: 'cancelled' })
  t.same(payloads(await take('q')), [3])
})
