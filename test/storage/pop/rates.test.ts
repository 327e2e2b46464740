// rate and partitionRate: how many messages a consumer group gets in a time, over all nodes, and when it may get
// more.
import {
  ack,
  configure,
  dueTimes,
  groupsWithWork,
  pop,
  promoteReady,
  push,
  reapExpired,
  release,
} from '@rouse/storage'
import { test } from 'tap'
import {
  demand,
  finish,
  item,
  message,
  openStorage,
  payloads,
  refusal,
  type Storage,
  start,
} from '../support/storage.ts'

async function openLimited(t: Parameters<typeof openStorage>[0], options: Record<string, unknown>) {
  const storage = await openStorage(t)
  await storage.freezeClock(start)
  await storage.set('q', { ordering: 'none', ...options })
  return storage
}

const numbers = (count: number) => Array.from({ length: count }, (_, n) => n)

async function groupRow({ rows }: Pick<Storage, 'rows'>) {
  const [row] = await rows<{ rate_tat: Date | null; blocked_until: Date | null }>(
    'select rate_tat, blocked_until from rouse.groups',
  )
  return row
}

test('a group gets the limit at once, and then one message each time a token is back', async (t) => {
  const storage = await openLimited(t, { rate: { limit: 3, perMs: 3_000 } })
  const { advanceClock, send, take } = storage
  await send('q', 'p', numbers(10))
  const first = await take('q', { batch: 10 })
  t.same(payloads(first), [0, 1, 2])
  t.equal(first.opensAtMs, start + 1_000)
  const none = await take('q', { batch: 10 })
  t.match(none, { status: 'empty', opensAtMs: start + 1_000, leases: [] })
  await advanceClock(999)
  t.equal((await take('q')).status, 'empty')
  await advanceClock(1)
  t.same(payloads(await take('q', { batch: 10 })), [3])
  await advanceClock(10_000)
  t.same(payloads(await take('q', { batch: 10 })), [4, 5, 6], 'the bucket holds the limit at most')
})

test('every group has its own bucket', async (t) => {
  const { send, take } = await openLimited(t, { rate: { limit: 1, perMs: 1_000 } })
  await send('q', 'p', [1, 2])
  t.same(payloads(await take('q', { batch: 9 })), [1])
  t.same(payloads(await take('q', { batch: 9, group: 'h' })), [1])
})

test('retries, redeliveries and autoAck count, and a release returns no token', async (t) => {
  const storage = await openLimited(t, {
    rate: { limit: 5, perMs: 5_000_000 },
    retryBackoffMs: [0],
  })
  const { advanceClock, lease, pool, send, take } = storage
  await send('q', 'p', ['fails'])
  await ack(pool, [item(await lease('q'), 0, 'failed')])
  await release(pool, [(await lease('q')).leaseId])
  await lease('q', { leaseMs: 1_000 })
  await advanceClock(1_000)
  await reapExpired(pool)
  await take('q', { autoAck: true })
  await send('q', 'p', [1, 2])
  t.same(payloads(await take('q', { batch: 9 })), [1], 'the fifth delivery')
  t.equal((await take('q')).status, 'empty')
})

test('concurrent pops of one group never exceed its bucket', async (t) => {
  const storage = await openLimited(t, { rate: { limit: 25, perMs: 60_000 } })
  const { pool, send } = storage
  for (const partition of ['a', 'b', 'c', 'd']) await send('q', partition, numbers(50))
  const results = await Promise.all(
    numbers(12).map(() =>
      pop(pool, {
        source: { queue: 'q' },
        group: 'g',
        demands: numbers(3).map(() => demand({ batch: 2 })),
      }).catch((error: { code?: string }) => {
        if (error.code !== 'RS001') throw error
        return { leases: [] }
      }),
    ),
  )
  t.equal(payloads({ leases: results.flatMap(({ leases }) => leases) }).length, 25)
})

test('a bucket that is used up blocks its group, promotion ends the block and wakes its waiters', async (t) => {
  const storage = await openLimited(t, { rate: { limit: 100, perMs: 1_000 } })
  const { advanceClock, pool, send, take } = storage
  await send('q', 'p', numbers(200))
  const { opensAtMs } = await take('q', { batch: 200 })
  t.equal(opensAtMs, start + 50, 'waiters are woken for several tokens at once')
  t.same((await groupRow(storage))?.blocked_until, new Date(start + 50))
  const source = { source: { queue: 'q' }, group: 'g' }
  t.same(await groupsWithWork(pool, [source]), [], 'the fallback poll finds nothing')
  t.match(await dueTimes(pool, 1_500), { promote: [start + 50] })
  await advanceClock(49)
  t.same((await promoteReady(pool, 100)).woken, [])
  await advanceClock(1)
  t.match((await promoteReady(pool, 100)).woken, [{ queue: 'q', partition: null, group: 'g' }])
  t.same((await groupRow(storage))?.blocked_until, null)
  t.same(await groupsWithWork(pool, [source]), [0])
  t.equal(payloads(await take('q', { batch: 200 })).length, 5)
})

test('without messages left, a group is not blocked and nothing falls due', async (t) => {
  const storage = await openLimited(t, { rate: { limit: 2, perMs: 1_000 } })
  const { pool, send, take } = storage
  await send('q', 'p', [1, 2])
  t.match(await take('q', { batch: 9 }), { opensAtMs: null, status: 'messages' })
  t.match(await take('q', { batch: 9 }), { opensAtMs: null, status: 'empty' })
  t.same((await groupRow(storage))?.blocked_until, null)
  t.match(await dueTimes(pool, 1_500), { promote: [] })
})

test('an earlier pop does not end the block of a later one', async (t) => {
  const storage = await openLimited(t, { rate: { limit: 20, perMs: 1_000 } })
  const { advanceClock, pool, send, take } = storage
  await send('q', 'p', numbers(40))
  await send('q', 'r', [1])
  t.equal((await take('q', { batch: 40 })).opensAtMs, start + 50)
  await advanceClock(50)
  t.equal(
    (await take('q', { batch: 1, partition: 'r' })).opensAtMs,
    start + 100,
    'it took the token for which the block waited',
  )
  t.same((await promoteReady(pool, 100)).woken, [])
  t.same((await groupRow(storage))?.blocked_until, new Date(start + 100))
})

test('a new rate counts at once, however long the old one would have blocked', async (t) => {
  const storage = await openLimited(t, { rate: { limit: 1, perMs: 86_400_000 } })
  const { advanceClock, send, set, take } = storage
  await send('q', 'p', numbers(9))
  await take('q')
  t.equal((await take('q')).opensAtMs, start + 86_400_000)
  await set('q', { rate: { limit: 2, perMs: 2_000 } })
  t.same((await groupRow(storage))?.blocked_until, null)
  t.match(await take('q'), { status: 'empty', opensAtMs: start + 1_000 })
  await set('q', { rate: { limit: 2, perMs: 2_000 }, priority: 1 })
  t.ok((await groupRow(storage))?.blocked_until, 'the same rate changes nothing')
  await advanceClock(1_000)
  t.same(payloads(await take('q', { batch: 9 })), [1])
  await set('q', { rate: null })
  t.same(await groupRow(storage), { rate_tat: null, blocked_until: null })
  t.equal(payloads(await take('q', { batch: 9 })).length, 7)
})

test('a pop that has locked its group keeps the old rate, and configure then clears its block', async (t) => {
  const storage = await openLimited(t, { rate: { limit: 1, perMs: 86_400_000 } })
  const { armBarrier, pool, send, take, waiting } = storage
  await send('q', 'p', numbers(3))
  await take('q', { partition: 'none' })
  const barrier = await armBarrier('pop-group-locked')
  const popped = take('q', { batch: 9 })
  await barrier.reached()
  const configured = configure(pool, { queue: 'q', options: { rate: { limit: 2, perMs: 1_000 } } })
  await waiting()
  await barrier.release()
  t.same(payloads(await popped), [0])
  await configured
  t.same((await groupRow(storage))?.blocked_until, null)
})

test('a pop that read the options before configure changed them must be repeated', async (t) => {
  const storage = await openLimited(t, { maxInFlight: 100 })
  const { armBarrier, begin, send, set, take, waiting } = storage
  await send('q', 'p', numbers(3))
  await take('q', { partition: 'none' })
  // The pop has read the queue and waits for its group.
  const holder = await begin()
  await holder.query('select from rouse.groups for update')
  const popped = refusal(take('q', { batch: 9 }))
  await waiting()
  await set('q', { priority: 3 })
  await holder.query('commit')
  t.match(await popped, { state: 'RS001' })
  await set('q', { maxInFlight: 0 })
  const barrier = await armBarrier('pop-begun')
  const other = refusal(take('q', { batch: 9, partition: 'p' })).catch(() => 'delivered')
  await barrier.reached()
  await set('q', { rate: { limit: 1, perMs: 1_000 } })
  await barrier.release()
  await other
  const { leases } = await take('q', { batch: 9 })
  t.ok(payloads({ leases }).length <= 1, 'the new rate counts for the next pop')
})

test('partitionRate: each partition of a group has its bucket, and a used up one blocks only its lane', async (t) => {
  for (const ordering of ['none', 'partition']) {
    const storage = await openLimited(t, { ordering, partitionRate: { limit: 2, perMs: 2_000 } })
    const { advanceClock, lane, pool, send, take } = storage
    await send('q', 'p', [1, 2, 3, 4])
    await send('q', 'r', [5, 6, 7])
    const both = await take('q', { batch: 9, partitions: 9 })
    t.same(payloads(both), [1, 2, 5, 6])
    t.equal(both.opensAtMs, start + 1_000)
    for (const one of both.leases) await finish(pool, one)
    t.same((await lane('p')).blocked_until, new Date(start + 1_000))
    t.match(await take('q', { batch: 9 }), { status: 'empty', opensAtMs: null })
    t.match(await dueTimes(pool, 1_500), { promote: [start + 1_000] })
    await advanceClock(1_000)
    t.match((await promoteReady(pool, 9)).woken, [
      { queue: 'q', partition: 'p', group: 'g' },
      { queue: 'q', partition: 'r', group: 'g' },
    ])
    const next = await take('q', { batch: 9, partitions: 9 })
    t.same(payloads(next), [3, 7])
    for (const one of next.leases) await finish(pool, one)
    await advanceClock(60_000)
    await promoteReady(pool, 9)
    await send('q', 'r', [8, 9, 10])
    t.same(payloads(await take('q', { batch: 9, partitions: 9 })), [4, 8, 9])
  }
})

test('partitionRate: several waiters share the bucket of a lane', async (t) => {
  const { pool, send } = await openLimited(t, { partitionRate: { limit: 5, perMs: 1_000 } })
  await send('q', 'p', numbers(20))
  const { leases } = await pop(pool, {
    source: { queue: 'q' },
    group: 'g',
    demands: numbers(4).map(() => demand({ batch: 2 })),
  })
  t.same(
    leases.map(({ messages }) => messages.length),
    [2, 2, 1],
  )
})

test('partitionRate: a retry that is due does not pass a used up bucket', async (t) => {
  const storage = await openLimited(t, {
    ordering: 'partition',
    retryBackoffMs: [0],
    partitionRate: { limit: 1, perMs: 1_000 },
  })
  const { advanceClock, lane, lease, pool, send, set, take } = storage
  await send('q', 'p', [1, 2])
  await ack(pool, [item(await lease('q'), 0, 'failed')])
  t.match(await take('q'), { status: 'empty', opensAtMs: start + 1_000 })
  t.same((await lane()).blocked_until, new Date(start + 1_000))
  await advanceClock(1_000)
  await promoteReady(pool, 9)
  t.match(await lease('q'), { attempt: 2 })
  await set('q', { partitionRate: null })
  t.same((await lane()).blocked_until, null)
})

test('rate and partitionRate both apply, and with maxInFlight all three', async (t) => {
  const { send, set, take } = await openLimited(t, {
    rate: { limit: 5, perMs: 5_000 },
    partitionRate: { limit: 2, perMs: 5_000 },
  })
  for (const partition of ['a', 'b', 'c']) await send('q', partition, numbers(5))
  t.equal(payloads(await take('q', { batch: 99, partitions: 9 })).length, 5)
  await set('q', { rate: { limit: 50, perMs: 50 }, partitionRate: null, maxInFlight: 7 })
  const { leases } = await take('q', { batch: 99, partitions: 9 })
  t.equal(payloads({ leases }).length, 0, 'the old bucket was empty')
})

test('in any window, no more than limit × T / perMs + limit messages are delivered', async (t) => {
  const { rows } = await openStorage(t)
  // Random pops at random times, from one bucket; the bound is checked for every pair of pops.
  for (const [limit, perMs] of [
    [3, 1_000],
    [7, 100],
    [1_000, 999],
    [1, 60_000],
  ] as const) {
    const [row] = await rows<{ over: string; taken: string }>(
      `with recursive pops as (
         select 0 as n, timestamptz '2030-01-01' as at, null::timestamptz as full_at, 0::bigint as taken
         union all
         select p.n + 1, x.at, rouse.rate_after($1, $2, p.full_at, x.at, x.k), x.k
         from pops p cross join lateral (
           select a.at, least(rouse.rate_tokens($1, $2, p.full_at, a.at), ((p.n * 7919) % ($1 + 1)))::bigint as k
           from (select p.at + ((p.n * 104729) % (2 * $2::integer / $1 + 2)) * interval '1 millisecond' as at) a
         ) x
         where p.n < 1000
       ), sums as (select n, at, taken, sum(taken) over (order by n) as total from pops)
       select count(*) filter (where b.total - a.total + a.taken
           > $1 * extract(epoch from b.at - a.at) * 1000 / $2 + $1) as over, (select max(total) from sums) as taken
       from sums a join sums b on b.n >= a.n`,
      [limit, perMs],
    )
    t.equal(Number(row?.over), 0, `${limit} in ${perMs} ms: ${row?.taken} delivered`)
    t.ok(Number(row?.taken) > limit)
  }
})

test('a wrong rate is refused', async (t) => {
  const { pool } = await openStorage(t)
  const wrong: unknown[] = [5, '5/s', [], {}, { limit: 5 }, { perMs: 5 }, { limit: 5, perMs: null }]
  wrong.push(
    ...[0, -1, 1.5, '5', 1_000_001].map((limit) => ({ limit, perMs: 1_000 })),
    ...[0, -1, 1.5, '5', 86_400_001].map((perMs) => ({ limit: 5, perMs })),
    { limit: 5, perMs: 1_000, burst: 5 },
  )
  for (const name of ['rate', 'partitionRate']) {
    for (const value of wrong) {
      const call = configure(pool, { queue: 'q', options: { [name]: value } })
      t.match(
        await refusal(call),
        { state: 'RS400', detail: { code: 'invalid_option', field: name } },
        JSON.stringify(value),
      )
    }
  }
})

test('independent messages have no partition, so the limits of partitions do not apply to them', async (t) => {
  const limits = { partitionRate: { limit: 1, perMs: 60_000 }, maxInFlightPerPartition: 1 }
  const { pool, take } = await openLimited(t, { ordering: 'keyed', ...limits })
  await push(
    pool,
    numbers(5).map((n) => message('q', undefined, n)),
  )
  await push(pool, [message('q', 'p', 'keyed'), message('q', 'p', 'keyed too')])
  t.same(payloads(await take('q', { batch: 2, partitions: 9 })), [0, 1])
  const { leases } = await take('q', { batch: 9, partitions: 9 })
  t.same(payloads({ leases }), [2, 3, 4, 'keyed'])
  t.equal((await take('q', { batch: 9 })).status, 'empty')
})
