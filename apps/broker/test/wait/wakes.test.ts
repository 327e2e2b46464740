// Which waiters are woken, and how many queries this costs. The queries are counted in PostgreSQL.
import { eventually } from '@rouse/testkit'
import { test } from 'tap'
import { type RunningBroker, startBroker } from '../support/broker.ts'
import { type Ackable, ackOf, apiOf, send } from '../support/http.ts'
import { countingDatabase, popsOf } from '../support/query-count.ts'

/**
 * A long timeout of grants: on a busy machine, a late worker would otherwise cause a second grant and pop.
 */
const fourWorkers = { ROUSE_WORKERS: '4', NOTIFY_DELIVERY_TIMEOUT_MS: '10000' }

async function untilWaiting(node: RunningBroker, count: number): Promise<void> {
  await eventually(
    async () => {
      const { body } = await send('GET', `${node.url}/stats`)
      const { groups, groups_in_flight: inFlight } = body.group_backoff
      const waiting = groups.reduce(
        (sum: number, group: { waiting: number }) => sum + group.waiting,
        0,
      )
      return waiting === count && inFlight === 0 // the last waiters have queried as well
    },
    { timeoutMs: 20_000 },
  )
}

test('one message for fifty waiters on four workers costs one delivery and at most two pops', async (t) => {
  const database = await countingDatabase(t)
  const node = await startBroker(t, { database, env: fourWorkers })
  const api = apiOf(node.url)
  const gone = new AbortController()
  let answered = 0
  const waiting = Array.from({ length: 50 }, () =>
    send('GET', api.at('/pop/queue/q?wait=true&timeout=60000'), undefined, {
      signal: gone.signal,
    }).then(
      ({ status }) => {
        if (status === 200) answered += 1
      },
      () => {},
    ),
  )
  await untilWaiting(node, 50)
  const before = await popsOf(database)
  await api.push({ queue: 'q', payload: 1 })
  await eventually(() => answered === 1)
  const spent = (await popsOf(database)) - before
  t.equal(answered, 1)
  t.ok(spent <= 2, `${spent} pops`)
  gone.abort()
  await Promise.all(waiting)
})

test('fifty messages in fifty partitions wake fifty waiters, one each', async (t) => {
  const node = await startBroker(t, { env: { ROUSE_WORKERS: '4' } })
  const api = apiOf(node.url)
  const waiting = Array.from({ length: 50 }, () =>
    api.pop('q', '?wait=true&timeout=30000&batch=10'),
  )
  await untilWaiting(node, 50)
  await api.push(
    ...Array.from({ length: 50 }, (_, i) => ({ queue: 'q', partition: `p${i}`, payload: i })),
  )
  const answers = await Promise.all(waiting)
  t.ok(answers.every(({ status, body }) => status === 200 && body.messages.length === 1))
})

test('a burst of a hundred pushes causes far fewer than a hundred pops', async (t) => {
  const database = await countingDatabase(t)
  const node = await startBroker(t, { database, env: fourWorkers })
  const api = apiOf(node.url)
  const waiting = Array.from({ length: 8 }, () =>
    api.pop('q', '?wait=true&timeout=30000&batch=10&partitions=10'),
  )
  await untilWaiting(node, 8)
  const before = await popsOf(database)
  await Promise.all(
    Array.from({ length: 100 }, (_, i) => api.push({ queue: 'q', partition: `p${i}`, payload: i })),
  )
  const answers = await Promise.all(waiting)
  t.ok(answers.every(({ status }) => status === 200))
  const spent = (await popsOf(database)) - before
  t.ok(spent < 50, `${spent} pops for 100 pushes and 8 waiters`)
})

/** The test waits until the node's sessions end and report their counts. Those of pgbouncer do not end. */
const skip =
  process.env.ROUSE_TEST_PGBOUNCER === '1' && 'the sessions belong to pgbouncer and do not end'

test('five hundred idle waiters in fifty groups cost at most two queries a second', {
  skip,
}, async (t) => {
  const node = await startBroker(t)
  const api = apiOf(node.url)
  const gone = new AbortController()
  const waiting = Array.from({ length: 500 }, (_, i) =>
    send('GET', api.at(`/pop/queue/q${i % 50}?wait=true&timeout=120000`), undefined, {
      signal: gone.signal,
    }).catch(() => {}),
  )
  await untilWaiting(node, 500)
  const seconds = 10
  const commits = async (): Promise<number> => {
    const { rows } = await node.database.pool.query<{ calls: string }>(
      'select xact_commit as calls from pg_stat_database where datname = current_database()',
    )
    return Number(rows[0]?.calls)
  }
  const { mode } = (await send('GET', `${node.url}/stats`)).body
  t.match(mode, { mode: 'healthy', why: [] }, 'five hundred first queries at once delayed no grant')
  // A session reports its count when it ends: workers close idle connections.
  await eventually(
    async () => {
      const { rows } = await node.database.pool.query(
        `select from pg_stat_activity
         where datname = current_database() and application_name like '%worker%'`,
      )
      return rows.length === 0
    },
    { timeoutMs: 40_000, intervalMs: 500 },
  )
  // Autovacuum commits in this database, too.
  await node.database.pool.query(`do $$ declare v regclass; begin
    for v in select c.oid from pg_class c where c.relkind = 'r' and c.relnamespace = 'rouse'::regnamespace loop
      execute format('alter table %s set (autovacuum_enabled = false)', v);
    end loop; end $$`)
  const before = await commits()
  const begun = performance.now()
  await eventually(() => performance.now() - begun >= seconds * 1_000, {
    timeoutMs: 20_000,
    intervalMs: 500,
  })
  const perSecond = ((await commits()) - before) / seconds
  // This includes the regular queries of the reaper, the promoter and the due poll. In ten seconds one more or
  // less counts; `bench -- http` measures a minute, and asserts 2.
  t.ok(perSecond <= 2.5, `${perSecond} transactions a second`)
  gone.abort()
  await Promise.all(waiting)
})

test('a node with two thousand waiters delivers a message within half a second', async (t) => {
  const node = await startBroker(t)
  const api = apiOf(node.url)
  const gone = new AbortController()
  const waiting = Array.from({ length: 2_000 }, (_, i) =>
    send('GET', api.at(`/pop/queue/crowd${i % 100}?wait=true&timeout=120000`), undefined, {
      signal: gone.signal,
    }).catch(() => undefined),
  )
  await untilWaiting(node, 2_000)
  const begun = performance.now()
  await api.push({ queue: 'crowd7', payload: 1 })
  const first = await Promise.race(waiting)
  const tookMs = performance.now() - begun
  t.equal(first?.status, 200)
  t.ok(tookMs < 500, `answered after ${tookMs} ms`)
  gone.abort()
  await Promise.all(waiting)
})

test('messages redelivered together wake as many waiters, although no hint has their count', async (t) => {
  const never = '600000'
  const env = {
    POP_WAIT_IDLE_INTERVAL_MS: never,
    POP_WAIT_BASE_INTERVAL_MS: never,
    POP_WAIT_MAX_INTERVAL_MS: never,
  }
  const node = await startBroker(t, { env })
  const api = apiOf(node.url)
  await api.post('/configure', { queue: 'q', options: { ordering: 'none' } })
  await api.push(...Array.from({ length: 5 }, (_, i) => ({ queue: 'q', payload: i })))
  const { body } = await api.pop('q', '?batch=5')
  const acknowledgments = body.messages.map((message: Ackable) => ({
    ...ackOf(message),
    status: 'retry',
    delayMs: 3_000,
  }))
  await api.post('/ack/batch', { acknowledgments })
  const waiting = Array.from({ length: 5 }, () => api.pop('q', '?wait=true&timeout=30000'))
  await untilWaiting(node, 5)
  const answers = await Promise.all(waiting)
  t.same(new Set(answers.map(({ body }) => body?.messages[0].data)), new Set([0, 1, 2, 3, 4]))
})
