// Rates on real nodes: the limit holds over all of them, and waiters sleep until the bucket allows the next
// message.
import { setTimeout as delay } from 'node:timers/promises'
import { eventually, type TestDatabase, testDatabase } from '@rouse/testkit'
import { test } from 'tap'
import { startBroker } from '../support/broker.ts'
import { startCluster, statsOf } from '../support/cluster.ts'
import { cuttableProxy } from '../support/cuttable-proxy.ts'
import { apiOf } from '../support/http.ts'
import { countingDatabase, popsOf } from '../support/query-count.ts'

/** Intervals of fallback polls that are too long for a poll to have woken a waiter. */
const hintsOnly = {
  POP_WAIT_IDLE_INTERVAL_MS: '600000',
  POP_WAIT_BASE_INTERVAL_MS: '600000',
  POP_WAIT_MAX_INTERVAL_MS: '600000',
}

/** The times of all deliveries, by the clock of the database. The messages are never acknowledged. */
async function deliveriesOf({ pool }: TestDatabase): Promise<number[]> {
  const { rows } = await pool.query<{ at: number }>(
    `select extract(epoch from s.delivered_at)::float8 * 1000 as at
     from rouse.leases s cross join lateral generate_series(1, bit_count(s.unacked)::integer) order by 1`,
  )
  return rows.map(({ at }) => at)
}

/** The most deliveries beyond `limit × T / perMs + limit` in any window of T ms. */
function excessOf(times: readonly number[], limit: number, perMs: number): number {
  let worst = Number.NEGATIVE_INFINITY
  for (const [i, from] of times.entries()) {
    for (let j = i; j < times.length; j += 1) {
      const allowed = (limit * ((times[j] as number) - from)) / perMs + limit
      worst = Math.max(worst, j - i + 1 - allowed)
    }
  }
  return worst
}

const timeout = 120_000

test('100 messages a second over three nodes and 50 consumers: no window has more, and little is left unused', {
  timeout,
}, async (t) => {
  const [limit, perMs, runMs, consumers] = [100, 1_000, 10_000, 50]
  const cluster = await startCluster(t, { nodes: 3, env: hintsOnly })
  const apis = cluster.map(({ url }) => apiOf(url))
  const [first] = apis as [(typeof apis)[0]]
  const { database } = cluster[0] as (typeof cluster)[0]
  await first.post('/configure', {
    queue: 'q',
    options: { ordering: 'none', leaseTime: 3_600, rate: { limit, perMs } },
  })
  for (let i = 0; i < 4; i += 1) {
    await first.push(...Array.from({ length: 500 }, (_, n) => ({ queue: 'q', payload: n })))
  }
  const endsAt = Date.now() + runMs
  await Promise.all(
    Array.from({ length: consumers }, async (_, n) => {
      const api = apis[n % apis.length] as (typeof apis)[0]
      while (Date.now() < endsAt) await api.pop('q', '?batch=20&wait=true&timeout=2000')
    }),
  )
  const times = await deliveriesOf(database)
  const seconds = ((times.at(-1) as number) - (times[0] as number)) / 1_000
  const excess = excessOf(times, limit, perMs)
  t.comment(`${times.length} deliveries in ${seconds.toFixed(1)} s, ${excess} above the bound`)
  t.ok(excess <= 1e-6, `${excess} above the bound`)
  // The bucket keeps the tokens of a second, so a busy machine that delivers late still delivers them.
  t.ok(seconds * 1_000 > runMs * 0.8, `${seconds} s`)
  t.ok(times.length >= 0.9 * (limit * seconds + limit), `${times.length} in ${seconds} s`)
})

test('waiters of a group that used up its rate sleep until it is allowed more, without polls', {
  timeout,
}, async (t) => {
  const database = await countingDatabase(t)
  const node = await startBroker(t, { database, env: hintsOnly })
  const api = apiOf(node.url)
  await api.post('/configure', {
    queue: 'q',
    options: { ordering: 'none', leaseTime: 3_600, rate: { limit: 1, perMs: 400 } },
  })
  await api.push(...[1, 2, 3, 4, 5].map((payload) => ({ queue: 'q', payload })))
  const answers = await Promise.all(
    Array.from({ length: 5 }, () => api.pop('q', '?wait=true&timeout=60000')),
  )
  t.same(
    answers.map(({ status }) => status),
    [200, 200, 200, 200, 200],
  )
  const times = await deliveriesOf(database)
  t.equal(times.length, 5)
  t.ok(excessOf(times, 1, 400) <= 1e-6)
  // One pop when the waiters arrive and one or two per message; polling for 1.6 s would need more.
  const pops = await popsOf(database)
  t.ok(pops <= 15, `${pops} pops`)

  await t.test('an idle limited queue costs no query', async (t) => {
    const waiting = api.pop('q', '?wait=true&timeout=60000')
    await eventually(async () => (await statsOf(node.url)).waiting.total === 1)
    await delay(500)
    const before = await popsOf(database)
    await delay(2_000)
    t.equal(await popsOf(database), before)
    const { rows } = await database.pool.query(
      'select from rouse.groups where blocked_until is not null',
    )
    t.same(rows, [], 'no block and no timer')
    await api.push({ queue: 'q', payload: 6 })
    t.match(await waiting, { status: 200, body: { messages: [{ data: 6 }] } })
  })
})

test('a waiter of an idle queue with a rate costs no more queries than one of a plain queue', {
  timeout,
}, async (t) => {
  const database = await testDatabase(t)
  const proxy = await cuttableProxy(t, database.url)
  const env = { ...hintsOnly, ROUSE_DATABASE_URL: proxy.url }
  const node = await startBroker(t, { database, env })
  const api = apiOf(node.url)
  const [watchMs, polls] = [5_000, 10]
  const used: number[] = []
  for (const rate of [null, { limit: 1, perMs: 300 }]) {
    const queue = rate === null ? 'plain' : 'limited'
    await api.post('/configure', { queue, options: { ordering: 'none', leaseTime: 3_600, rate } })
    await api.push({ queue, payload: 1 })
    t.equal((await api.pop(queue, '?wait=true&timeout=30000')).status, 200)
    const waiting = api.pop(queue, '?wait=true&timeout=60000')
    await eventually(async () => (await statsOf(node.url)).waiting.total === 1)
    // Whatever the delivery has left to do ends in this time: the bucket is full after 300 ms.
    await delay(1_000)
    const before = proxy.requests()
    await delay(watchMs)
    used.push(proxy.requests() - before)
    await api.push({ queue, payload: 2 })
    t.match(await waiting, { status: 200, body: { messages: [{ data: 2 }] } })
  }
  const [plain = 0, limited = 0] = used
  t.comment(`${plain} requests for a plain queue, ${limited} for a limited one, in ${watchMs} ms`)
  t.ok(limited <= plain + polls, `${limited} and ${plain}`)
})

test('partitionRate: a waiter gets the next message of a partition when its bucket allows it', {
  timeout,
}, async (t) => {
  const database = await countingDatabase(t)
  const node = await startBroker(t, { database, env: hintsOnly })
  const api = apiOf(node.url)
  await api.post('/configure', {
    queue: 'q',
    options: { leaseTime: 3_600, partitionRate: { limit: 1, perMs: 500 } },
  })
  await api.push(...[1, 2, 3].map((payload) => ({ queue: 'q', partition: 'p', payload })))
  await api.push({ queue: 'q', partition: 'other', payload: 'other' })
  const came: unknown[] = []
  for (let i = 0; i < 4; i += 1) {
    const { body } = await api.pop('q', '?wait=true&timeout=30000')
    came.push(body.messages[0].data)
    await api.ack(body.messages[0])
  }
  t.same(came, [1, 'other', 2, 3])
})
