// Rule 13 of docs/storage.md: what retention may remove, and what it must keep.
import {
  ack,
  deadLetters,
  deleteGroup,
  promoteDue,
  purge,
  push,
  reapExpired,
  redrive,
  release,
  retain,
  seek,
} from '@rouse/storage'
import { test } from 'tap'
import { retainRound } from '../support/retain-round.ts'
import {
  finish,
  item,
  message,
  openStorage,
  payloads,
  type Storage,
  start,
} from '../support/storage.ts'

const day = 86_400_000

async function kept({ rows }: Storage): Promise<unknown[]> {
  const found = await rows<{ payload: string }>('select payload from rouse.messages order by seq')
  return found.map(({ payload }) => JSON.parse(payload))
}

/** Pushes five messages at a frozen time. The tests then advance the clock. */
async function fiveOld(storage: Storage): Promise<void> {
  await storage.freezeClock(start)
  await storage.send('q', 'p', [1, 2, 3, 4, 5])
}

test('messages that every group has consumed are removed when they are old enough', async (t) => {
  const storage = await openStorage(t)
  const { advanceClock, pool, take } = storage
  await fiveOld(storage)
  await take('q', { batch: 3, autoAck: true })
  await advanceClock(day - 1)
  t.match(await retainRound(pool), { messages: 0 })
  await advanceClock(2)
  t.match(await retainRound(pool), { messages: 3, next: '0' })
  t.same(await kept(storage), [4, 5])
  t.same(payloads(await take('q', { batch: 9 })), [4, 5])
})

test('messages that the slowest group has not consumed stay', async (t) => {
  const storage = await openStorage(t)
  const { advanceClock, pool, take } = storage
  await fiveOld(storage)
  await take('q', { group: 'fast', batch: 5, autoAck: true })
  await take('q', { group: 'slow', batch: 1, autoAck: true })
  await advanceClock(2 * day)
  await retainRound(pool)
  t.same(await kept(storage), [2, 3, 4, 5])
})

test('without a group nothing counts as consumed', async (t) => {
  const storage = await openStorage(t)
  await fiveOld(storage)
  await storage.advanceClock(365 * day)
  t.match(await retainRound(storage.pool), { messages: 0, partitions: 0 })
  t.equal((await kept(storage)).length, 5)
})

test('a lease retains its messages, even after it has expired', async (t) => {
  const storage = await openStorage(t)
  const { advanceClock, pool, take } = storage
  await fiveOld(storage)
  await take('q', { autoAck: true })
  await take('q', { batch: 4, leaseMs: 1_000 })
  await advanceClock(2 * day)
  await retainRound(pool)
  t.same(await kept(storage), [2, 3, 4, 5])
  await reapExpired(pool)
  t.same(payloads(await take('q')), [2])
})

test('a message that waits for redelivery stays, and so do those behind it', async (t) => {
  const storage = await openStorage(t)
  const { advanceClock, lease, pool, set, take } = storage
  await set('q', { onFailure: 'skip' })
  await fiveOld(storage)
  const held = await lease('q', { batch: 5 })
  const statuses = [undefined, undefined, 'failed', undefined, undefined] as const
  const delayMs = 3 * day
  await ack(
    pool,
    statuses.map((status, at) => item(held, at, status, { delayMs })),
  )
  await advanceClock(2 * day)
  await retainRound(pool)
  t.same(await kept(storage), [3, 4, 5])
  await advanceClock(2 * day)
  await promoteDue(pool)
  t.same(payloads(await take('q', { autoAck: true })), [3])
  await retainRound(pool)
  t.same(await kept(storage), [])
})

for (const [what, act] of [
  ['a seek', ({ pool }) => seek(pool, { queue: 'q', group: 'g', to: new Date(start + day) })],
  ['a purge', ({ pool }) => purge(pool, 'q')],
  [
    'the deletion of the group',
    async ({ pool, rows }) => {
      await deleteGroup(pool, 'q', 'g')
      await rows(`select from rouse.removal_step('test')`)
    },
  ],
] as [string, (storage: Storage) => Promise<unknown>][]) {
  test(`${what} removes leases and redeliveries`, async (t) => {
    const storage = await openStorage(t)
    const { lease, pool, rows, set } = storage
    await set('q', { ordering: 'none' })
    await fiveOld(storage)
    await ack(pool, [item(await lease('q'), 0, 'failed', { delayMs: 1_000 })])
    await lease('q', { batch: 2 })
    await act(storage)
    const left = 'select from rouse.leases union all select from rouse.redeliveries'
    t.same(await rows(left), [])
    await storage.advanceClock(10 * day)
    t.same([...(await reapExpired(pool)), ...(await promoteDue(pool))], [])
  })
}

test('unconsumed messages are removed after retentionSeconds, ttl or maxWaitTimeSeconds, if set', async (t) => {
  for (const option of ['retentionSeconds', 'ttl', 'maxWaitTimeSeconds']) {
    const storage = await openStorage(t)
    await storage.set('q', { [option]: 60 })
    await fiveOld(storage)
    await storage.advanceClock(60_001)
    await storage.send('q', 'p', ['young'])
    await retainRound(storage.pool)
    t.same(await kept(storage), ['young'], option)
    t.same(payloads(await storage.take('q', { batch: 9 })), ['young'], option)
  }
})

test('a queue may keep consumed messages permanently, or have no retention at all', async (t) => {
  for (const options of [{ completedRetentionSeconds: -1 }, { retentionEnabled: false }]) {
    const storage = await openStorage(t)
    await storage.set('q', options)
    await fiveOld(storage)
    await storage.take('q', { batch: 9, autoAck: true })
    await storage.advanceClock(365 * day)
    t.match(await retainRound(storage.pool), { messages: 0 })
  }
})

test('an idle empty partition is removed with its lanes, and the next push creates it again', async (t) => {
  const storage = await openStorage(t)
  const { advanceClock, pool, rows, send, take } = storage
  await fiveOld(storage)
  await take('q', { batch: 9, autoAck: true })
  await advanceClock(6 * day)
  t.match(await retainRound(pool), { messages: 5, partitions: 0 })
  await advanceClock(2 * day)
  t.match(await retainRound(pool), { partitions: 1 })
  t.same(await rows('select from rouse.lanes union all select from rouse.partitions'), [])
  await send('q', 'p', ['again'])
  t.same(payloads(await take('q')), ['again'])
})

test('an idle partition stays while a group is being created on it', async (t) => {
  const storage = await openStorage(t)
  const { advanceClock, armBarrier, pool, send, take } = storage
  await fiveOld(storage)
  await take('q', { batch: 9, autoAck: true })
  await advanceClock(30 * day)
  await retainRound(pool, { idlePartitionMs: 100 * day })
  const birth = await armBarrier('subscribe-written')
  const first = take('q', { group: 'late' })
  await birth.reached()
  t.match(await retainRound(pool), { partitions: 0 })
  await birth.release()
  t.equal((await first).status, 'empty')
  t.match(await retainRound(pool), { partitions: 1 })
  await send('q', 'p', ['again'])
  t.same(payloads(await take('q', { group: 'late' })), ['again'])
})

test('a dead letter outlives its message, and a redrive restores it', async (t) => {
  const storage = await openStorage(t)
  const { advanceClock, lease, pool, take } = storage
  await fiveOld(storage)
  const held = await lease('q', { batch: 5 })
  await ack(
    pool,
    held.messages.map((_, at) => item(held, at, at === 1 ? 'dlq' : undefined)),
  )
  await advanceClock(10 * day)
  t.match(await retainRound(pool), { messages: 5 })
  await retainRound(pool)
  t.match(await deadLetters(pool), { total: 1, letters: [{ payload: '2' }] })
  await redrive(pool, { queue: 'q' })
  t.match(await retainRound(pool), { messages: 0 }, 'it is held now')
  const again = await lease('q', { batch: 9 })
  t.same([again.attempt, payloads(again)], [1, [2]])
  await finish(pool, again)
  t.match(await retainRound(pool), { messages: 1 })
  t.equal((await take('q')).status, 'empty')
})

test('dead letters, attempts and keys are removed after their own times', async (t) => {
  const storage = await openStorage(t)
  const { advanceClock, freezeClock, lease, pool } = storage
  await freezeClock(start)
  await push(pool, [message('q', 'p', 1, { transactionId: 'k' })])
  await ack(pool, [item(await lease('q'), 0, 'dlq')])
  await advanceClock(3_600_000)
  t.match(await retainRound(pool), { dedup: 1, deadLetters: 0, attempts: 0 })
  await advanceClock(14 * day)
  t.match(await retainRound(pool), { deadLetters: 1, attempts: 1 })
})

test('a step is bounded, and the next one continues where it stopped', async (t) => {
  const storage = await openStorage(t)
  const { advanceClock, freezeClock, pool, rows, send, take } = storage
  await freezeClock(start)
  for (const partition of ['a', 'b', 'c']) await send('q', partition, [1, 2, 3])
  await take('q', { batch: 99, partitions: 9, autoAck: true })
  await advanceClock(2 * day)
  let after = '0'
  let calls = 0
  do {
    const { messages, next } = await retain(pool, { after, rows: 2, partitions: 2 })
    t.ok(messages <= 2)
    after = next
    calls += 1
  } while (after !== '0' && calls < 20)
  t.same(await rows('select from rouse.messages'), [])
})

test('retention never removes what is delivered and released concurrently', async (t) => {
  const storage = await openStorage(t)
  const { pool, rows, send, take } = storage
  await send(
    'q',
    'p',
    Array.from({ length: 20 }, (_, i) => i),
  )
  await take('q', { partition: 'nowhere' })
  let busy = true
  const giving = (async () => {
    for (let round = 0; round < 150; round += 1) {
      const { leases } = await take('q', { batch: 5 })
      for (const { leaseId } of leases) await release(pool, [leaseId])
    }
    busy = false
  })()
  while (busy) await retainRound(pool, { completedMs: 0 })
  await giving
  t.same(await rows('select tail from rouse.partitions'), [{ tail: '1' }])
  t.equal(payloads(await take('q', { batch: 99 })).length, 20)
})
