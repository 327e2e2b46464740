// The maximum age of redelivered messages: ttl and maxWaitTimeSeconds apply to them as to fresh ones.
import {
  ack,
  deadLetters,
  promoteDue,
  reapExpired,
  redrive,
  release,
  retain,
  seek,
} from '@rouse/storage'
import { type Test, test } from 'tap'
import { finish, item, openStorage, payloads, type Storage, start } from '../support/storage.ts'

const ttlMs = 3_000
const retryMs = 20_000
const short = { ttl: ttlMs / 1_000, retryBackoffMs: [retryMs] }

async function openFrozen(t: Test): Promise<Storage> {
  const storage = await openStorage(t)
  await storage.freezeClock(start)
  return storage
}

async function fail({ lease, pool }: Storage, batch = 1): Promise<void> {
  const { leaseId } = await lease('q', { batch })
  await ack(pool, [{ leaseId, status: 'failed' }])
}

for (const option of ['ttl', 'maxWaitTimeSeconds']) {
  test(`a failed message older than ${option} frees its lane and is not redelivered`, async (t) => {
    const storage = await openFrozen(t)
    const { advanceClock, pool, rows, send, set, take } = storage
    await set('q', { [option]: 3, retryBackoffMs: [retryMs] })
    await send('q', 'p', [1])
    await fail(storage)
    await send('q', 'p', [2])
    await advanceClock(ttlMs)
    t.same(await promoteDue(pool), [], 'it may still be delivered')
    await advanceClock(1)
    t.match(await promoteDue(pool), [{ queue: 'q', partition: 'p', group: 'g' }])
    await send('q', 'p', [3])
    t.same(payloads(await take('q', { batch: 9, autoAck: true })), [3], 'the second is as old')
    await advanceClock(retryMs)
    t.same(await promoteDue(pool), [])
    t.equal((await take('q', { batch: 9 })).status, 'empty')
    const left = 'select from rouse.redeliveries union all select from rouse.dead_letters'
    t.same(await rows(left), [])
  })
}

test('the shorter of ttl and maxWaitTimeSeconds counts', async (t) => {
  const storage = await openFrozen(t)
  const { lane, send, set } = storage
  await set('q', { ttl: 9, maxWaitTimeSeconds: 5, retryBackoffMs: [retryMs] })
  await send('q', 'p', [1])
  await fail(storage)
  t.same((await lane()).blocked_until, new Date(start + 5_000))
})

test('a failed message that is young enough is redelivered when it is due', async (t) => {
  const storage = await openFrozen(t)
  const { advanceClock, lane, lease, pool, send, set } = storage
  await set('q', { ttl: 60, retryBackoffMs: [retryMs] })
  await send('q', 'p', [1])
  await fail(storage)
  t.same((await lane()).blocked_until, new Date(start + retryMs))
  await advanceClock(retryMs)
  await promoteDue(pool)
  t.match(await lease('q'), { attempt: 2 })
})

test('a message that is too old when it fails does not hold its lane', async (t) => {
  const storage = await openFrozen(t)
  const { advanceClock, lease, pool, send, set, take } = storage
  await set('q', short)
  await send('q', 'p', [1])
  const held = await lease('q')
  await advanceClock(ttlMs + 1)
  await send('q', 'p', [2])
  t.match((await ack(pool, [item(held, 0, 'failed')])).woken, [{ queue: 'q', group: 'g' }])
  t.same(payloads(await take('q', { batch: 9 })), [2])
})

test('of several failed messages, those that are too old are dropped and the next holds the lane', async (t) => {
  const storage = await openFrozen(t)
  const { advanceClock, lane, pool, rows, send, set, take } = storage
  await set('q', short)
  await send('q', 'p', Array(250).fill('old'))
  await advanceClock(2_000)
  await send('q', 'p', ['young', 'fresh'])
  await fail(storage, 251)
  await advanceClock(ttlMs - 1_999)
  await promoteDue(pool)
  t.equal((await take('q', { batch: 9 })).status, 'empty')
  t.same(await rows('select seq from rouse.redeliveries'), [{ seq: '251' }])
  t.same((await lane()).blocked_until, new Date(start + 2_000 + ttlMs))
})

type ComesBack = (storage: Storage) => Promise<unknown>
const waysBack: [string, object, ComesBack][] = [
  ['failed where failures skip', { onFailure: 'skip' }, (storage) => fail(storage)],
  ['failed in order none', { ordering: 'none' }, (storage) => fail(storage)],
  ['was not acknowledged in time', {}, ({ lease }) => lease('q', { leaseMs: 10 })],
  [
    'was released behind a completed one',
    { ttl: 40 },
    async ({ advanceClock, lease, pool }) => {
      const held = await lease('q', { batch: 2, leaseMs: 100_000 })
      await ack(pool, [item(held, 1)])
      await advanceClock(40_000)
      await release(pool, [held.leaseId])
    },
  ],
]

for (const [what, options, comesBack] of waysBack) {
  test(`a message that ${what} is not redelivered after its ttl`, async (t) => {
    const storage = await openFrozen(t)
    const { advanceClock, pool, rows, send, set, take } = storage
    await set('q', { ...short, ...options })
    await send('q', 'p', [1, 2])
    await comesBack(storage)
    await advanceClock(retryMs)
    await reapExpired(pool)
    await promoteDue(pool)
    t.equal((await rows('select from rouse.redeliveries')).length, 1)
    await send('q', 'p', [3])
    t.same(payloads(await take('q', { batch: 9 })), [3])
    t.same(await rows('select from rouse.redeliveries'), [])
  })
}

test('a message that was too old to be redelivered is removed by retention', async (t) => {
  const storage = await openFrozen(t)
  const { advanceClock, pool, rows, send, set, take } = storage
  await set('q', short)
  await send('q', 'p', [1])
  await fail(storage)
  await advanceClock(ttlMs + 1)
  await promoteDue(pool)
  t.equal((await take('q')).status, 'empty')
  t.match(await retain(pool), { messages: 1 })
  t.same(await rows('select from rouse.messages'), [])
})

test('a redriven dead letter is delivered at any age, alone, until it completes or is a dead letter again', async (t) => {
  const storage = await openFrozen(t)
  const { advanceClock, lease, pool, send, set } = storage
  await set('q', { ...short, retryLimit: 1, retryBackoffMs: [0] })
  await send('q', 'p', ['letter', 'old'])
  for (let delivery = 0; delivery < 2; delivery += 1) await fail(storage)
  await fail(storage)
  await advanceClock(retryMs)
  await redrive(pool, { queue: 'q' })
  for (const attempt of [1, 2]) {
    const held = await lease('q', { batch: 9 })
    t.equal(held.attempt, attempt)
    t.same(payloads(held), ['letter'])
    await ack(pool, [item(held, 0, 'failed')])
  }
  t.match(await deadLetters(pool), { total: 1, letters: [{ payload: '"letter"' }] })
  await send('q', 'p', ['fresh'])
  const next = await lease('q', { batch: 9 })
  t.same(payloads(next), ['fresh'])
  await finish(pool, next)
})

for (const [name, end] of [
  ['fails', (storage, leaseId) => ack(storage.pool, [{ leaseId, status: 'failed' }])],
  ['is given back', (storage, leaseId) => ack(storage.pool, [{ leaseId, status: 'retry' }])],
  ['is released', (storage, leaseId) => release(storage.pool, [leaseId])],
  [
    'expires',
    async (storage) => {
      await storage.advanceClock(3_600_000)
      await reapExpired(storage.pool)
    },
  ],
] as [string, (storage: Storage, leaseId: string) => Promise<unknown>][]) {
  test(`a redriven dead letter that ${name} is redelivered, even if the retry limit was raised and its attempts were removed`, async (t) => {
    const storage = await openFrozen(t)
    const { advanceClock, lease, pool, rows, send, set, take } = storage
    await set('q', { ttl: 3, retryLimit: 0, retryBackoffMs: [1_000], leaseTime: 60 })
    await send('q', 'p', ['dead'])
    await fail(storage)
    await advanceClock(ttlMs + 1)
    await set('q', { retryLimit: 5 })
    await redrive(pool, { queue: 'q' })
    const { leaseId } = await lease('q')
    await rows(`delete from rouse.attempts where outcome = 'failed'`)
    await end(storage, leaseId)
    await advanceClock(1_000)
    await promoteDue(pool)
    t.same(payloads(await take('q')), ['dead'])
  })
}

test('a message that a seek delivered again, and that was released, is dropped when it is too old', async (t) => {
  const storage = await openFrozen(t)
  const { advanceClock, lease, pool, send, set, take } = storage
  await set('q', { retryBackoffMs: [0] })
  await send('q', 'p', [1])
  await fail(storage)
  await seek(pool, { queue: 'q', group: 'g', to: new Date(start) })
  const { leaseId, attempt } = await lease('q')
  t.equal(attempt, 1)
  await release(pool, [leaseId])
  await set('q', { ttl: ttlMs / 1_000 })
  await advanceClock(ttlMs + 1)
  t.equal((await take('q')).status, 'empty')
})

test('a dead letter that a seek delivered again is dropped when it is too old, and stays a dead letter', async (t) => {
  const storage = await openFrozen(t)
  const { advanceClock, lease, pool, rows, send, set, take } = storage
  await set('q', { ttl: ttlMs / 1_000 })
  await send('q', 'p', [1])
  await ack(pool, [{ leaseId: (await lease('q')).leaseId, status: 'dlq' }])
  await seek(pool, { queue: 'q', group: 'g', to: new Date(start) })
  await ack(pool, [{ leaseId: (await lease('q')).leaseId, status: 'retry' }])
  await advanceClock(ttlMs + 1)
  t.equal((await take('q')).status, 'empty')
  t.same(await rows('select from rouse.redeliveries'), [])
  await redrive(pool, { queue: 'q' })
  t.same(payloads(await take('q')), [1])
})

test('a redriven dead letter that waits longer than dead letters are kept is still delivered', async (t) => {
  const storage = await openFrozen(t)
  const { advanceClock, lease, pool, send, set, take } = storage
  await set('q', { ttl: ttlMs / 1_000, retryLimit: 0, completedRetentionSeconds: -1 })
  await send('q', 'p', [1])
  const { leaseId } = await lease('q')
  await ack(pool, [{ leaseId, status: 'failed' }])
  await redrive(pool, { queue: 'q' })
  const dayMs = 86_400_000
  await advanceClock(15 * dayMs)
  await retain(pool)
  t.same(payloads(await take('q')), [1])
})
