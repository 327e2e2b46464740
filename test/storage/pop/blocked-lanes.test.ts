// A lane that waits for a retry or for the end of its window buffer is blocked. A message that may be
// delivered earlier unblocks it.
import { ack, enqueue, promoteDue, push, redrive, release } from '@rouse/storage'
import { type Test, test } from 'tap'
import { item, message, openStorage, payloads, type Storage, start } from '../support/storage.ts'

async function openFrozen(t: Test): Promise<Storage> {
  const storage = await openStorage(t)
  await storage.freezeClock(start)
  return storage
}

const minute = 60_000

test('a message that fails without delay comes before a later one that waits', async (t) => {
  const { lease, pool, send, take } = await openFrozen(t)
  await send('q', 'p', [1, 2])
  const held = await lease('q', { batch: 2 })
  await ack(pool, [item(held, 1, 'failed', { delayMs: minute })])
  await ack(pool, [item(held, 0, 'failed', { delayMs: 0 })])
  t.same(payloads(await take('q', { batch: 2 })), [1])
})

test('a message that waits does not hold an earlier one that failed before it', async (t) => {
  const { lease, pool, send, take } = await openFrozen(t)
  await send('q', 'p', [1, 2])
  const held = await lease('q', { batch: 2 })
  const now = item(held, 0, 'failed', { delayMs: 0 })
  await ack(pool, [now, item(held, 1, 'failed', { delayMs: minute })])
  t.same(payloads(await take('q', { batch: 2 })), [1])
})

test('a released message comes before a later one that waits', async (t) => {
  const { lease, pool, send, take } = await openFrozen(t)
  await send('q', 'p', [1, 2])
  const held = await lease('q', { batch: 2 })
  await ack(pool, [item(held, 1, 'failed', { delayMs: minute })])
  await release(pool, [held.leaseId])
  t.same(payloads(await take('q', { batch: 2 })), [1])
})

test('a redriven dead letter comes before a later message that waits', async (t) => {
  const { lease, pool, send, take } = await openFrozen(t)
  await send('q', 'p', [1, 2])
  const held = await lease('q', { batch: 2 })
  await ack(pool, [item(held, 0, 'dlq'), item(held, 1, 'failed', { delayMs: minute })])
  t.equal((await take('q')).status, 'empty')
  await redrive(pool, { queue: 'q' })
  t.same(payloads(await take('q', { batch: 2 })), [1])
})

test('a retry that is due does not wait for the window of fresh messages', async (t) => {
  const { advanceClock, lease, pool, send, set, take } = await openFrozen(t)
  await set('q', { windowBuffer: 60, onFailure: 'skip' })
  await send('q', 'p', [1])
  await advanceClock(minute)
  const held = await lease('q')
  await ack(pool, [item(held, 0, 'failed', { delayMs: 1_000 })])
  await send('q', 'p', [2])
  t.equal((await take('q')).status, 'empty', 'this look closes the lane for a minute')
  await advanceClock(1_000)
  await promoteDue(pool)
  t.same(payloads(await take('q', { batch: 2 })), [1])
})

test('scheduled messages and duplicates do not restart the window of a partition', async (t) => {
  const { advanceClock, pool, set, take } = await openFrozen(t)
  await set('q', { windowBuffer: 10 })
  await push(pool, [message('q', 'p', 1, { transactionId: 'k' })])
  await advanceClock(9_000)
  await push(pool, [message('q', 'p', 2, { transactionId: 'k' })])
  await push(pool, [message('q', 'p', 3, { delayMs: minute })])
  await advanceClock(1_000)
  t.same(payloads(await take('q', { batch: 9 })), [1])
})

test('a duplicate of a SQL producer does not restart the window when it is promoted', async (t) => {
  const { advanceClock, pool, set, take } = await openFrozen(t)
  await set('q', { windowBuffer: 10 })
  await push(pool, [message('q', 'p', 1, { transactionId: 'k' })])
  await enqueue(pool, { queue: 'q', partition: 'p', payload: '2', transactionId: 'k' })
  await advanceClock(9_000)
  await promoteDue(pool)
  await advanceClock(1_000)
  t.same(payloads(await take('q', { batch: 9 })), [1])
})
