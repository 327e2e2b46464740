// A lane that waits, for a retry or for its window to end, is closed. Whatever may come before that opens it.
import { ack, promoteDue, redrive, release } from '@rouse/sidecar'
import { type Test, test } from 'tap'
import { item, openStorage, payloads, type Storage, start } from './support/storage.ts'

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

test('a message that is given back comes before a later one that waits', async (t) => {
  const { lease, pool, send, take } = await openFrozen(t)
  await send('q', 'p', [1, 2])
  const held = await lease('q', { batch: 2 })
  await ack(pool, [item(held, 1, 'failed', { delayMs: minute })])
  await release(pool, [held.leaseId])
  t.same(payloads(await take('q', { batch: 2 })), [1])
})

test('a redriven letter comes before a later message that waits', async (t) => {
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
