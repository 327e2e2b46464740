// Rule 11 of docs/storage.md: scheduled messages enter the log by partition, in order of (due time, id),
// exactly once.
import { deleteQueue, enqueue, promoteDue, purge, push } from '@rouse/storage'
import { test } from 'tap'
import { message, openStorage, payloads, type Storage, start } from '../support/storage.ts'

async function delay(
  { pool }: Storage,
  payload: unknown,
  delayMs: number,
  rest: { transactionId?: string } = {},
): Promise<void> {
  await push(pool, [message('q', 'p', payload, { delayMs, ...rest })])
}

test('a delayed push is not delivered before its time, and then at once', async (t) => {
  const { advanceClock, freezeClock, pool, take, ...rest } = await openStorage(t)
  await freezeClock(start)
  const pushed = await push(pool, [message('q', 'p', 'late', { delayMs: 5_000 })])
  t.match(pushed, { items: [{ status: 'scheduled' }], woken: [] })
  await rest.send('q', 'p', ['now'])
  t.same(payloads(await take('q', { batch: 9, autoAck: true })), ['now'])
  await advanceClock(4_999)
  t.same(await promoteDue(pool), [])
  await advanceClock(1)
  t.match(await promoteDue(pool), [{ queue: 'q', partition: 'p', group: null, count: 1 }])
  const { leases } = await take('q', { batch: 9 })
  t.same(payloads({ leases }), ['late'])
  t.equal(leases[0]?.messages[0]?.createdAtMs, start + 5_000)
})

test('promotion follows due times, then the order of arrival', async (t) => {
  const storage = await openStorage(t)
  await storage.freezeClock(start)
  await delay(storage, 'c', 3_000)
  await delay(storage, 'a', 1_000)
  await delay(storage, 'b1', 2_000)
  await delay(storage, 'b2', 2_000)
  await storage.advanceClock(10_000)
  await promoteDue(storage.pool)
  t.same(payloads(await storage.take('q', { batch: 9 })), ['a', 'b1', 'b2', 'c'])
})

test('an absolute time in the past is no delay', async (t) => {
  const { freezeClock, pool, take } = await openStorage(t)
  await freezeClock(start)
  const pushed = await push(pool, [
    message('q', 'p', 'past', { runAtMs: start - 1 }),
    message('q', 'p', 'future', { runAtMs: start + 1 }),
  ])
  t.match(pushed.items, [{ status: 'queued' }, { status: 'scheduled' }])
  t.same(payloads(await take('q', { batch: 9 })), ['past'])
})

test('a queue with delayed processing delays every push', async (t) => {
  const { advanceClock, freezeClock, pool, send, set, take } = await openStorage(t)
  await freezeClock(start)
  await set('q', { delayedProcessing: 2 })
  t.match((await send('q', 'p', [1])).items, [{ status: 'scheduled' }])
  await advanceClock(2_000)
  await promoteDue(pool)
  t.same(payloads(await take('q')), [1])
})

for (const barrier of ['promote-locked', 'promote-taken']) {
  test(`two promoters do not interleave in a partition: one is stopped at ${barrier}`, async (t) => {
    const storage = await openStorage(t)
    const { advanceClock, armBarrier, freezeClock, pool, take } = storage
    await freezeClock(start)
    await delay(storage, 1, 1_000)
    await delay(storage, 2, 2_000)
    await advanceClock(1_000)
    const promoting = await armBarrier(barrier)
    const first = promoteDue(pool)
    await promoting.reached()
    await advanceClock(5_000)
    await enqueue(pool, { queue: 'q', partition: 'p', payload: '3' })
    t.same(await promoteDue(pool), [], 'the partition is left to the one that has it')
    await promoting.release()
    await first
    await promoteDue(pool)
    t.same(payloads(await take('q', { batch: 9 })), [1, 2, 3])
  })
}

test('concurrent promoters deliver everything once, in order', async (t) => {
  const storage = await openStorage(t)
  const { advanceClock, freezeClock, pool, take } = storage
  await freezeClock(start)
  const items = Array.from({ length: 60 }, (_, i) => {
    return message('q', `p${i % 3}`, i, { delayMs: 1_000 + i })
  })
  await push(pool, items)
  await advanceClock(10_000)
  await Promise.all(Array.from({ length: 6 }, () => promoteDue(pool, 7)))
  while ((await promoteDue(pool, 7)).length > 0);
  for (const partition of [0, 1, 2]) {
    const came = payloads(await take('q', { partition: `p${partition}`, batch: 99 }))
    t.same(
      came,
      Array.from({ length: 20 }, (_, i) => partition + 3 * i),
    )
  }
})

test('a promotion meets a push to its partition without loss', async (t) => {
  const storage = await openStorage(t)
  const { advanceClock, armBarrier, freezeClock, pool, send, take, waiting } = storage
  await freezeClock(start)
  await send('q', 'p', [0])
  await take('q', { autoAck: true })
  await delay(storage, 'promoted', 1_000)
  await advanceClock(1_000)
  const promoting = await armBarrier('promote-taken')
  const promotion = promoteDue(pool)
  await promoting.reached()
  const pushing = send('q', 'p', ['pushed'])
  await waiting()
  await promoting.release()
  await Promise.all([promotion, pushing])
  t.same(payloads(await take('q', { batch: 9 })), ['promoted', 'pushed'])
})

test('a promotion creates the queue and partition that an enqueue named', async (t) => {
  const { pool, take } = await openStorage(t)
  await enqueue(pool, { queue: 'born', partition: 'late', payload: '1' })
  await promoteDue(pool)
  t.same(payloads(await take('born')), [1])
})

test('a key whose window ended while its message waited does not stop promotion', async (t) => {
  const storage = await openStorage(t)
  const { advanceClock, freezeClock, pool, set, take } = storage
  await freezeClock(start)
  await set('q', { dedupWindowSeconds: 1 })
  await delay(storage, 'first', 10_000, { transactionId: 'k' })
  await advanceClock(2_000)
  await delay(storage, 'second', 8_000, { transactionId: 'k' })
  await enqueue(pool, {
    queue: 'q',
    partition: 'p',
    payload: '"third"',
    transactionId: 'k2',
    delayMs: 8_000,
  })
  await advanceClock(20_000)
  await promoteDue(pool)
  t.same(payloads(await take('q', { batch: 9 })), ['first', 'second', 'third'])
})

test('a purge counts scheduled messages and those in the log', async (t) => {
  const storage = await openStorage(t)
  await storage.send('q', 'p', [1, 2])
  await storage.send('other', 'p', [1])
  await delay(storage, 'late', 60_000)
  await enqueue(storage.pool, { queue: 'q', partition: 'new', payload: '4' })
  t.equal(await purge(storage.pool, 'q'), 4)
  t.equal(await purge(storage.pool, 'q'), 0)
})

test('a message that is promoted while its queue is purged is counted once', async (t) => {
  const storage = await openStorage(t)
  const { advanceClock, armBarrier, freezeClock, pool, rows, waiting } = storage
  await freezeClock(start)
  await delay(storage, 'due', 1_000)
  await delay(storage, 'late', 60_000)
  await advanceClock(1_000)
  const promoting = await armBarrier('promote-taken')
  const promoted = promoteDue(pool)
  await promoting.reached()
  const purged = purge(pool, 'q')
  await waiting()
  await promoting.release()
  t.match(await promoted, [{ queue: 'q', count: 1 }])
  t.equal(await purged, 2)
  t.same(await rows('select from rouse.partitions where tail < head'), [])
  t.same(await rows('select from rouse.scheduled'), [])
})

test('a purge and a deletion remove scheduled messages', async (t) => {
  const storage = await openStorage(t)
  const { advanceClock, freezeClock, pool, rows } = storage
  await freezeClock(start)
  await delay(storage, 1, 1_000)
  await purge(pool, 'q')
  t.same(await rows('select from rouse.scheduled'), [])
  await delay(storage, 2, 1_000)
  await deleteQueue(pool, 'q')
  await advanceClock(1_000)
  t.same(await promoteDue(pool), [])
})
