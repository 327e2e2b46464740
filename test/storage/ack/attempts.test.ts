// Rule 9 of docs/storage.md, and retry delays: which messages are charged and redelivered, when, and in which
// order.
import { ack, deadLetters, type Lease, promoteDue, reapExpired } from '@rouse/storage'
import { test } from 'tap'
import {
  finish,
  item,
  openStorage,
  payloads,
  type Storage,
  seqs,
  start,
  type TakeOptions,
} from '../support/storage.ts'

const hour = 3_600_000

async function expire({ advanceClock, pool }: Storage): Promise<void> {
  await advanceClock(hour)
  await reapExpired(pool)
}

/** Pops and completes messages until a pop finds none; returns each delivery as [attempt, payloads]. */
async function drain({ pool, take }: Storage, options: TakeOptions = {}): Promise<unknown[]> {
  const came: unknown[] = []
  for (;;) {
    const { leases } = await take('q', options)
    if (leases.length === 0) return came
    for (const lease of leases) {
      came.push([lease.attempt, payloads(lease)])
      await finish(pool, lease)
    }
  }
}

test('a batch whose lease expired comes back one message per lease, in order', async (t) => {
  const storage = await openStorage(t)
  await storage.freezeClock(start)
  await storage.send('q', 'p', [1, 2, 3, 4, 5, 6])
  await storage.lease('q', { batch: 5, leaseMs: 1_000 })
  await expire(storage)
  const came = await drain(storage, { batch: 5 })
  t.same(came, [
    [2, [1]],
    [2, [2]],
    [2, [3]],
    [2, [4]],
    [2, [5]],
    [1, [6]],
  ])
})

test('a message that kills its consumer becomes a dead letter after exactly retryLimit + 1 deliveries, alone', async (t) => {
  const storage = await openStorage(t)
  const { freezeClock, lease, pool, send, set, take } = storage
  await freezeClock(start)
  await set('q', { retryLimit: 2 })
  await send('q', 'p', ['a', 'poison', 'b', 'c'])
  const deliveries = new Map<unknown, number>()
  const done: unknown[] = []
  for (let calls = 0; calls < 20; calls += 1) {
    const { leases } = await take('q', { batch: 4, leaseMs: 1_000 })
    if (leases.length === 0) break
    const held = leases[0] as Lease
    for (const payload of payloads(held))
      deliveries.set(payload, (deliveries.get(payload) ?? 0) + 1)
    if (payloads(held).includes('poison')) await expire(storage)
    else {
      await finish(pool, held)
      done.push(...payloads(held))
    }
  }
  t.same(
    [...deliveries],
    [
      ['a', 2],
      ['poison', 3],
      ['b', 2],
      ['c', 2],
    ],
  )
  t.same(done, ['a', 'b', 'c'], 'the lane goes on')
  const { letters } = await deadLetters(pool)
  t.match(letters, [{ payload: '"poison"', attempts: 3, errorCode: 'lease_expired' }])
  await send('q', 'p', ['d'])
  t.match(await lease('q'), { attempt: 1 })
})

test('an attempt is charged at delivery, before its result is known', async (t) => {
  const storage = await openStorage(t)
  await storage.freezeClock(start)
  await storage.send('q', 'p', [1])
  t.match(await storage.lease('q', { leaseMs: 1_000 }), { attempt: 1 })
  await expire(storage)
  t.match(await storage.lease('q', { leaseMs: 1_000 }), { attempt: 2 })
  await expire(storage)
  t.match(await storage.lease('q'), { attempt: 3 })
})

test('every attempt that did not complete is recorded', async (t) => {
  const storage = await openStorage(t)
  const { freezeClock, lease, pool, rows, send } = storage
  await freezeClock(start)
  await send('q', 'p', [1])
  await lease('q', { leaseMs: 1_000 })
  await expire(storage)
  const fault = { errorCode: 'E1', errorMessage: 'no' }
  await ack(pool, [item(await lease('q'), 0, 'failed', fault)])
  await storage.advanceClock(hour)
  await promoteDue(pool)
  await ack(pool, [item(await lease('q'), 0, 'dlq', fault)])
  t.match(
    await rows('select attempt, outcome, error_code, holder from rouse.attempts order by id'),
    [
      { attempt: 1, outcome: 'expired', error_code: 'lease_expired', holder: 'test' },
      { attempt: 2, outcome: 'failed', error_code: 'E1' },
      { attempt: 3, outcome: 'dlq', error_code: 'E1' },
    ],
  )
})

for (const onFailure of ['hold', 'skip']) {
  test(`a partly acknowledged batch redelivers exactly what failed, with onFailure ${onFailure}`, async (t) => {
    const storage = await openStorage(t)
    const { lease, pool, send, set } = storage
    await set('q', { onFailure, retryBackoffMs: [0] })
    await send('q', 'p', [1, 2, 3, 4, 5])
    const held = await lease('q', { batch: 4 })
    const statuses = ['completed', 'failed', 'completed', 'failed'] as const
    t.same(
      (
        await ack(
          pool,
          statuses.map((status, at) => item(held, at, status)),
        )
      ).rejected,
      [],
    )
    t.same(await drain(storage, { batch: 9 }), [
      [2, [2, 4]],
      [1, [5]],
    ])
  })
}

test('a failed message waits for the delay of its attempt, and the last delay repeats', async (t) => {
  const { advanceClock, freezeClock, lease, pool, send, set, take } = await openStorage(t)
  await freezeClock(start)
  await set('q', { retryBackoffMs: [0, 30_000, 300_000], retryLimit: 10 })
  await send('q', 'p', [1])
  for (const [attempt, waitMs] of [0, 30_000, 300_000, 300_000].entries()) {
    const held = await lease('q')
    t.equal(held.attempt, attempt + 1)
    await ack(pool, [item(held, 0, 'failed')])
    if (waitMs === 0) continue
    await advanceClock(waitMs - 1)
    t.same(await promoteDue(pool), [])
    t.equal((await take('q')).status, 'empty')
    await advanceClock(1)
    t.match(await promoteDue(pool), [{ queue: 'q', partition: 'p', group: 'g', count: 1 }])
  }
  t.match(await lease('q'), { attempt: 5 })
})

test('a failed message holds what is behind it until it is due', async (t) => {
  const storage = await openStorage(t)
  const { advanceClock, freezeClock, lane, lease, pool, send, set, take } = storage
  await freezeClock(start)
  await set('q', { onFailure: 'hold', retryBackoffMs: [30_000] })
  await send('q', 'p', [1, 2])
  await ack(pool, [item(await lease('q'), 0, 'failed')])
  t.equal((await take('q', { batch: 9 })).status, 'empty')
  t.same((await lane()).blocked_until, new Date(start + 30_000))
  await advanceClock(30_000)
  await promoteDue(pool)
  t.same(await drain(storage), [
    [2, [1]],
    [1, [2]],
  ])
})

test('with onFailure skip a failed message does not hold its lane', async (t) => {
  const storage = await openStorage(t)
  const { advanceClock, freezeClock, lease, pool, send, set } = storage
  await freezeClock(start)
  await set('q', { onFailure: 'skip', retryBackoffMs: [30_000] })
  await send('q', 'p', [1, 2])
  await ack(pool, [item(await lease('q'), 0, 'failed')])
  t.same(await drain(storage), [[1, [2]]])
  await advanceClock(30_000)
  await promoteDue(pool)
  t.same(await drain(storage), [[2, [1]]])
})

test('with onFailure hold, messages that failed at different times come back in order', async (t) => {
  const storage = await openStorage(t)
  const { advanceClock, freezeClock, lease, pool, send, set } = storage
  await freezeClock(start)
  await set('q', { onFailure: 'hold' })
  await send('q', 'p', [1, 2, 3, 4])
  const held = await lease('q', { batch: 3 })
  const delays = [5_000, 10_000, 5_000]
  await ack(
    pool,
    delays.map((delayMs, at) => item(held, at, 'failed', { delayMs })),
  )
  await advanceClock(5_000)
  await promoteDue(pool)
  const early = await drain(storage, { batch: 9 })
  t.same(early, [[2, [1]]], 'the second is not due, so the third waits as well')
  await advanceClock(5_000)
  await promoteDue(pool)
  t.same(await drain(storage, { batch: 9 }), [
    [2, [2, 3]],
    [1, [4]],
  ])
})

test('a retry is not charged and waits for the requested delay', async (t) => {
  const { advanceClock, freezeClock, lease, pool, send, set, take } = await openStorage(t)
  await freezeClock(start)
  await set('q', { retryLimit: 0 })
  await send('q', 'p', [1])
  for (let round = 0; round < 3; round += 1) {
    const held = await lease('q')
    t.equal(held.attempt, 1)
    const { deadLettered } = await ack(pool, [item(held, 0, 'retry', { delayMs: 2_000 })])
    t.same(deadLettered, [])
    t.equal((await take('q')).status, 'empty')
    await advanceClock(2_000)
    await promoteDue(pool)
  }
  await ack(pool, [item(await lease('q'), 0, 'retry')])
  t.match(await lease('q'), { attempt: 1 }, 'without a delay it comes at once')
})

test('a failure may have its own delay', async (t) => {
  const { advanceClock, freezeClock, lease, pool, send, set, take } = await openStorage(t)
  await freezeClock(start)
  await set('q', { retryBackoffMs: [0] })
  await send('q', 'p', [1])
  await ack(pool, [item(await lease('q'), 0, 'failed', { delayMs: 7_000 })])
  t.equal((await take('q')).status, 'empty')
  await advanceClock(7_000)
  await promoteDue(pool)
  t.match(await lease('q'), { attempt: 2 })
})

test('a queue without dead letters drops a message at its retry limit, records it, and continues', async (t) => {
  const storage = await openStorage(t)
  const { freezeClock, lease, pool, rows, send, set, take } = storage
  await freezeClock(start)
  await set('q', { deadLetterQueue: false, retryLimit: 0 })
  await send('q', 'p', [1, 2, 3])
  const { deadLettered, rejected } = await ack(pool, [item(await lease('q'), 0, 'failed')])
  t.same([deadLettered, rejected], [[], []], 'there is no dead letter')
  await lease('q', { leaseMs: 1_000 })
  await expire(storage)
  t.same(payloads(await take('q', { autoAck: true })), [3])
  t.equal((await take('q')).status, 'empty')
  t.same(await rows('select from rouse.dead_letters union all select from rouse.redeliveries'), [])
})

test('an ack with status dlq makes a dead letter, even in a queue without dead letters', async (t) => {
  const { lease, pool, send, set, take } = await openStorage(t)
  await set('q', { deadLetterQueue: false, retryLimit: 0 })
  await send('q', 'p', [1, 2, 3, 4])
  const held = await lease('q', { batch: 3 })
  const statuses = ['failed', 'dlq', 'completed'] as const
  const items = statuses.map((status, at) => item(held, at, status, { errorCode: status }))
  t.same((await ack(pool, items)).deadLettered, [1])
  t.match(await deadLetters(pool), { total: 1, letters: [{ payload: '2', errorCode: 'dlq' }] })
  t.same(payloads(await take('q', { batch: 9 })), [4])
})

test('with ordering none, a lane delivers other messages while one waits for its retry', async (t) => {
  const storage = await openStorage(t)
  const { freezeClock, lease, pool, send, set } = storage
  await freezeClock(start)
  await set('q', { ordering: 'none', retryBackoffMs: [30_000] })
  await send('q', 'p', [1, 2, 3])
  const held = await lease('q', { batch: 2 })
  await ack(pool, [item(held, 0, 'failed')])
  t.same(seqs(await lease('q', { batch: 9 })), [3])
  await storage.advanceClock(30_000)
  await promoteDue(pool)
  t.same(seqs(await lease('q', { batch: 9 })), [1])
})
