// Options of single messages: retryLimit, retryBackoffMs and ttlMs instead of those of their queue.
import {
  ack,
  deadLetters,
  type MessageOptions,
  messageById,
  promoteDue,
  push,
  reapExpired,
  redrive,
  release,
  seek,
  stats,
} from '@rouse/storage'
import { type Test, test } from 'tap'
import { newId } from '../support/new-id.ts'
import { retainRound } from '../support/retain-round.ts'
import {
  finish,
  item,
  message,
  openStorage,
  payloads,
  refusal,
  type Storage,
  start,
} from '../support/storage.ts'

const day = 86_400_000

/** A storage with a frozen clock, and a group `g` that has seen the queue `q`. */
async function opened(t: Test, queueOptions: Record<string, unknown> = {}) {
  const storage = await openStorage(t)
  await storage.freezeClock(start)
  await storage.set('q', queueOptions)
  await storage.take('q')
  /** Pushes messages in one call, each as [payload, options]. */
  const add = async (partition: string | undefined, ...items: [unknown, MessageOptions?][]) => {
    const messages = items.map(([payload, options]) =>
      message('q', partition, payload, { id: newId(), options }),
    )
    return (await push(storage.pool, messages)).items.map(({ messageId }) => messageId)
  }
  return { ...storage, add }
}

async function drained({ take, pool }: Pick<Storage, 'take' | 'pool'>): Promise<unknown[]> {
  const came: unknown[] = []
  for (;;) {
    const popped = await take('q', { batch: 10, partitions: 10 })
    if (popped.status === 'empty') return came
    came.push(...payloads(popped))
    for (const lease of popped.leases) await finish(pool, lease)
  }
}

function due({ rows }: Pick<Storage, 'rows'>) {
  return rows<{ payload: string; attempt: number; inMs: number }>(
    `select m.payload, r.attempt, (extract(epoch from r.due_at) * 1000 - $1)::float8 as "inMs"
     from rouse.redeliveries r join rouse.messages m using (partition_id, seq) order by r.seq`,
    [start],
  )
}

for (const partition of ['p', undefined]) {
  const kind = partition === undefined ? 'independent' : 'ordered'
  test(`each message of a failed batch has its own limit and delays (${kind})`, async (t) => {
    const storage = await opened(t, { retryLimit: 3, retryBackoffMs: [60_000], onFailure: 'skip' })
    const { add, pool, lease } = storage
    await add(
      partition,
      ['queue'],
      ['never', { retryLimit: 0 }],
      ['soon', { retryBackoffMs: [100, 200] }],
      ['both', { retryLimit: 1, retryBackoffMs: [300] }],
    )
    const { leaseId } = await lease('q', { batch: 4 })
    t.match(await ack(pool, [{ leaseId, status: 'failed' }]), {
      rejected: [],
      deadLettered: [0],
      woken: [{ queue: 'q', group: 'g' }],
    })
    t.same(await due(storage), [
      { payload: '"queue"', attempt: 1, inMs: 60_000 },
      { payload: '"soon"', attempt: 1, inMs: 100 },
      { payload: '"both"', attempt: 1, inMs: 300 },
    ])
    const letters = await deadLetters(pool, { queue: 'q', limit: 10 })
    t.match(
      letters.letters.map(({ payload }) => payload),
      ['"never"'],
    )
    await storage.advanceClock(300)
    await promoteDue(pool)
    const again = await storage.take('q', { batch: 4 })
    t.same(payloads(again), ['soon', 'both'])
    for (const { leaseId } of again.leases) await ack(pool, [{ leaseId, status: 'failed' }])
    t.match(await due(storage), [
      { payload: '"queue"' },
      { payload: '"soon"', attempt: 2, inMs: 500 },
    ])
  })
}

test('an expired lease counts against the limit of the message', async (t) => {
  const { add, advanceClock, lease, pool, rows } = await opened(t, { retryLimit: 5 })
  await add('p', ['once', { retryLimit: 0 }], ['more'])
  await lease('q', { batch: 2, leaseMs: 1_000 })
  await advanceClock(1_000)
  await reapExpired(pool)
  t.match(await rows('select payload from rouse.dead_letters'), [{ payload: '"once"' }])
  t.equal((await rows('select from rouse.redeliveries')).length, 1)
})

test('the queue with exponential backoff leaves a message its own delays', async (t) => {
  const retryBackoff = { type: 'exponential', baseMs: 5_000, factor: 2 }
  const storage = await opened(t, { retryBackoff, onFailure: 'skip' })
  const { add, lease, pool } = storage
  await add(undefined, ['own', { retryBackoffMs: [7] }], ['queue'])
  await ack(pool, [{ leaseId: (await lease('q', { batch: 2 })).leaseId, status: 'failed' }])
  t.match(await due(storage), [{ inMs: 7 }, { inMs: 5_000 }])
})

for (const ordering of ['keyed', 'partition', 'none']) {
  test(`a message is not delivered after its ttlMs, and all others are (ordering ${ordering})`, async (t) => {
    const storage = await opened(t, { ordering })
    const { add, advanceClock, pool, rows, take } = storage
    const ids = await add(
      'p',
      [1, { ttlMs: 1_000 }],
      [2],
      [3, { ttlMs: 1_000 }],
      [4, { ttlMs: 1_001 }],
    )
    await advanceClock(1_000)
    t.match((await stats(pool))[0]?.groups[0], { pending: 2 })
    t.match(await messageById(pool, ids[0] as string), {
      options: { priority: 0, retryLimit: null, expiresAt: start + 1_000 },
      groups: [{ status: 'completed' }],
    })
    t.match(await messageById(pool, ids[3] as string), { groups: [{ status: 'pending' }] })
    t.same(await drained(storage), [2, 4])
    t.same(await rows('select from rouse.dead_letters'), [])
    t.same(await rows('select from rouse.attempts'), [])
    await seek(pool, { queue: 'q', group: 'g', to: new Date(0) })
    await advanceClock(10)
    t.same(await drained(storage), [2], 'also not after a seek')
    t.match(await take('q'), { status: 'empty' })
  })
}

test('a lane of which everything has expired is empty, and its cursor moves', async (t) => {
  const { add, advanceClock, lane, take } = await opened(t)
  await add('p', [1, { ttlMs: 1 }], [2, { ttlMs: 1 }])
  await advanceClock(1)
  t.match(await take('q'), { status: 'empty' })
  t.match(await lane(), { next: '3', ready: false })
})

test('expired messages take no space of a queue with maxSize', async (t) => {
  const { add, advanceClock, pool } = await opened(t, { maxSize: 2 })
  await add('p', [1, { ttlMs: 1_000 }], [2])
  t.match(await refusal(push(pool, [message('q', 'p', 3)])), { state: 'RS429' })
  await advanceClock(1_000)
  await push(pool, [message('q', 'p', 3)])
})

test('a retry that comes too late is dropped without a dead letter, and no longer holds its lane', async (t) => {
  const storage = await opened(t, { retryBackoffMs: [60_000] })
  const { add, advanceClock, lane, lease, pool, rows, take } = storage
  await add('p', ['late', { ttlMs: 1_000 }], ['next'])
  await ack(pool, [item(await lease('q'), 0, 'failed')])
  t.same((await lane()).blocked_until, new Date(start + 1_000), 'not until the retry')
  t.match(await take('q'), { status: 'empty' })
  await advanceClock(1_000)
  t.match(await promoteDue(pool), [{ queue: 'q', partition: 'p', group: 'g' }])
  t.same(await drained(storage), ['next'])
  t.same(await rows('select from rouse.redeliveries'), [])
  t.same(await rows('select from rouse.dead_letters'), [])
})

test('of several retries in a pop only those are delivered that have not expired', async (t) => {
  const storage = await opened(t, { ordering: 'none', retryBackoffMs: [0] })
  const { add, advanceClock, lease, pool } = storage
  await add('p', [1], [2, { ttlMs: 1_000 }], [3], [4, { ttlMs: 5_000 }])
  const { leaseId } = await lease('q', { batch: 4 })
  await ack(pool, [{ leaseId, status: 'failed' }])
  await advanceClock(1_000)
  t.same(new Set(await drained(storage)), new Set([1, 3, 4]))
})

test('a released message is not delivered after its ttlMs', async (t) => {
  const storage = await opened(t)
  const { add, advanceClock, lease, pool } = storage
  await add('p', [1, { ttlMs: 1_000 }], [2])
  const { leaseId } = await lease('q', { batch: 2 })
  await release(pool, [leaseId])
  await advanceClock(1_000)
  t.same(await drained(storage), [2])
})

test('a redriven message does not expire, whether a retry or the cursor delivers it', async (t) => {
  for (const seeks of [false, true]) {
    const storage = await opened(t, { retryLimit: 5 })
    const { add, advanceClock, lease, pool } = storage
    await add('p', [1, { ttlMs: 1_000, retryLimit: 0 }], [2])
    await ack(pool, [item(await lease('q'), 0, 'failed')])
    if (seeks) await seek(pool, { queue: 'q', group: 'g', to: new Date(0) })
    await advanceClock(2_000)
    await redrive(pool, { queue: 'q' })
    const again = await lease('q')
    t.same(payloads(again), [1], seeks ? 'after a seek' : 'without a seek')
    await ack(pool, [item(again, 0, 'failed')])
    const letters = await deadLetters(pool, { queue: 'q', limit: 10 })
    t.equal(letters.letters.length, 1, 'its own retryLimit still counts')
  }
})

test('a message that is restored from its dead letter keeps its retryLimit', async (t) => {
  const { add, advanceClock, lease, pool, rows } = await opened(t, { retryLimit: 5 })
  const [id] = await add('p', [1, { retryLimit: 0, retryBackoffMs: [9] }])
  await ack(pool, [item(await lease('q'), 0, 'failed')])
  await advanceClock(2 * day)
  await retainRound(pool)
  t.same(await rows('select from rouse.messages'), [])
  t.same(await rows('select from rouse.message_options'), [])
  t.match(await messageById(pool, id as string), {
    options: { retryLimit: 0, retryBackoffMs: [9] },
  })
  await redrive(pool, { queue: 'q' })
  await ack(pool, [item(await lease('q'), 0, 'failed')])
  t.match(await rows('select payload from rouse.dead_letters'), [{ payload: '1' }])
})

test('retention removes expired messages that no group has read, as late as completed ones', async (t) => {
  const { add, advanceClock, pool, rows } = await opened(t)
  await add('p', [1, { ttlMs: 1_000 }], [2, { ttlMs: 1_000 }], [3], [4, { ttlMs: 1_000 }])
  await advanceClock(day)
  t.match(await retainRound(pool), { messages: 0 })
  await advanceClock(1_000)
  t.match(await retainRound(pool), { messages: 2 })
  t.same(await rows('select payload from rouse.messages order by seq'), [
    { payload: '3' },
    { payload: '4' },
  ])
})

test('what a pop returns is what it leases, although messages expire meanwhile', async (t) => {
  const { add, advanceClock, armBarrier, pool, take } = await opened(t)
  await add('p', [1, { ttlMs: 1_000 }], [2], [3, { ttlMs: 1_000 }])
  const popping = await armBarrier('pop-offered')
  const popped = take('q', { batch: 3 })
  await popping.reached()
  await advanceClock(1_000)
  await popping.release()
  const { leases } = await popped
  t.same(payloads({ leases }), [1, 2, 3])
  const lease = leases[0] as (typeof leases)[number]
  const acks = [0, 1, 2].map((place) => item(lease, place))
  t.match(await ack(pool, acks), { rejected: [] })
})

test('a message that expires during a pop is delivered by it or never', async (t) => {
  const storage = await opened(t)
  const { add, advanceClock, armBarrier, take } = storage
  await add('p', [1, { ttlMs: 1_000 }])
  const popping = await armBarrier('pop-locked')
  const first = take('q', { batch: 2 })
  await popping.reached()
  await advanceClock(1_000)
  await popping.release()
  t.same(payloads(await first), [1], 'by the clock of its beginning it was in time')
  t.match(await take('q'), { status: 'empty' })
})
