// The test plan of seed document 000 (see ARCHITECTURE.md), long polling. Each title ends with the number of
// its item. Items that take minutes run in the bench.
import { eventually } from '@rouse/testkit'
import pg from 'pg'
import { test } from 'tap'
import { startBroker } from '../support/broker.ts'
import { apiOf } from '../support/http.ts'
import { stateOf, untilWaiting, wakesDuring } from '../support/node-state.ts'
import { countingDatabase, popsOf } from '../support/query-count.ts'
import { sharedBroker, unique } from '../support/shared-broker.ts'

const node = await sharedBroker()
const api = apiOf(node.url)
const { pool, url } = node.database

test('the migration creates both triggers (000-1)', async (t) => {
  const { rows } = await pool.query(
    `select tgname from pg_trigger where tgname in ('scheduled_notifies', 'freed_notifies') order by 1`,
  )
  t.same(
    rows.map(({ tgname }) => tgname),
    ['freed_notifies', 'scheduled_notifies'],
  )
})

test('a committed row notifies with its due time in ms (000-2, 000-3)', async (t) => {
  const listener = new pg.Client({ connectionString: url })
  await listener.connect()
  t.teardown(() => listener.end())
  const payloads: string[] = []
  listener.on('notification', ({ payload = '' }) => payloads.push(payload))
  await listener.query('listen rouse_scheduled')
  await pool.query(`select rouse.enqueue('000-2', '1')`)
  const dueAtMs = Date.now() + 60_000
  await pool.query(`select rouse.enqueue('000-2', '1', run_at => $1)`, [new Date(dueAtMs)])
  await eventually(() => payloads.length === 2)
  t.same(payloads, ['0', String(dueAtMs)])
})

test('a message that is due now wakes a waiter at once, by NOTIFY (000-4)', async (t) => {
  const queue = unique()
  const waiting = api.pop(queue, '?wait=true&timeout=20000')
  await untilWaiting(node, queue, 1)
  let tookMs = Number.POSITIVE_INFINITY
  const wakes = await wakesDuring(node, async () => {
    await pool.query(`select rouse.enqueue($1, '1')`, [queue])
    const begun = performance.now()
    t.equal((await waiting).status, 200)
    tookMs = performance.now() - begun
  })
  t.ok(tookMs < 500, `${tookMs} ms after the commit; the limit of the bench is 10 ms`)
  t.match(wakes, { notify: 1, fallback: 0 })
})

test('a delayed message wakes a waiter when it is due, by a timer (000-5)', async (t) => {
  const queue = unique()
  const waiting = api.pop(queue, '?wait=true&timeout=20000')
  await untilWaiting(node, queue, 1)
  const begun = performance.now()
  const wakes = await wakesDuring(node, async () => {
    await pool.query(`select rouse.enqueue($1, '1', delay => '2 seconds')`, [queue])
    t.equal((await waiting).status, 200)
  })
  const tookMs = performance.now() - begun
  t.ok(tookMs >= 2_000 && tookMs < 2_500, `after ${tookMs} ms`)
  t.match(wakes, { timer: 1, fallback: 0 })
})

test('one message for four waiters costs one pop, and one more that ends the chain (000-6)', async (t) => {
  const database = await countingDatabase(t)
  const env = { ROUSE_WORKERS: '4', NOTIFY_DELIVERY_TIMEOUT_MS: '10000' }
  const own = await startBroker(t, { database, env })
  const client = apiOf(own.url)
  const gone = new AbortController()
  let answered = 0
  const waiting = Array.from({ length: 4 }, async () => {
    const response = await fetch(client.at('/pop/queue/q?wait=true&timeout=60000'), {
      signal: gone.signal,
    })
    if (response.status === 200) answered += 1
  }).map((one) => one.catch(() => {}))
  await untilWaiting(own, 'q', 4)
  const before = await popsOf(database)
  await database.pool.query(`select rouse.enqueue('q', '1')`)
  await eventually(() => answered === 1)
  const spent = (await popsOf(database)) - before
  // A pop that finds a message wakes the next worker with waiters: one more pop, which ends the chain.
  t.ok(spent <= 2, `${spent} pops`)
  t.equal(answered, 1)
  gone.abort()
  await Promise.all(waiting)
})

test('a waiter is woken although NOTIFY is switched off (000-7)', async (t) => {
  const own = await startBroker(t, { env: { ROUSE_NOTIFY: 'off' } })
  const waiting = apiOf(own.url).pop('q', '?wait=true&timeout=20000')
  await untilWaiting(own, 'q', 1)
  const wakes = await wakesDuring(own, async () => {
    await own.database.pool.query(`select rouse.enqueue('q', '1')`)
    t.equal((await waiting).status, 200)
  })
  t.equal(wakes.notify, 0)
})

test('an earlier timer replaces a later one (000-8)', async (t) => {
  const queue = unique()
  const waiting = api.pop(queue, '?wait=true&timeout=20000')
  await untilWaiting(node, queue, 1)
  await pool.query(`select rouse.enqueue($1, '"later"', delay => '30 seconds')`, [queue])
  const begun = performance.now()
  await pool.query(`select rouse.enqueue($1, '"sooner"', delay => '400 milliseconds')`, [queue])
  const { body } = await waiting
  const tookMs = performance.now() - begun
  t.equal(body.messages[0].data, 'sooner')
  t.ok(tookMs >= 400 && tookMs < 1_000, `after ${tookMs} ms`)
})

test('a hundred messages at once are consumed by all waiters with few wake-ups (000-9)', async (t) => {
  const queue = unique()
  const gotten = new Set<number>()
  const consumers = Array.from({ length: 4 }, async () => {
    while (gotten.size < 100) {
      const { status, body } = await api.pop(
        queue,
        '?wait=true&timeout=1000&batch=10&partitions=10&autoAck=true',
      )
      if (status === 200) for (const { data } of body.messages) gotten.add(data)
    }
  })
  await untilWaiting(node, queue, 4)
  const wakes = await wakesDuring(node, async () => {
    await pool.query(
      `select rouse.enqueue($1, to_json(n), partition => 'p' || n) from generate_series(1, 100) n`,
      [queue],
    )
    await Promise.all(consumers)
  })
  t.equal(gotten.size, 100)
  t.ok((wakes.notify ?? 0) <= 10, `${wakes.notify} wakes by NOTIFY`)
})

test('a node with waiters and no messages sends few queries (000-10)', async (t) => {
  // On a busy machine a late grant may start aggressive mode. With this setting, the mode is short.
  const own = await startBroker(t, { env: { AGGRESSIVE_POLL_DURATION_MS: '500' } })
  const gone = new AbortController()
  const waiting = Array.from({ length: 20 }, (_, i) =>
    fetch(`${own.url}/api/v1/pop/queue/idle${i}?wait=true&timeout=60000`, { signal: gone.signal }),
  ).map((one) => one.catch(() => {}))
  await eventually(async () => {
    const { groups } = (await stateOf(own)).group_backoff
    return groups.filter(({ waiting: count }) => count > 0).length === 20
  })
  await eventually(async () => (await stateOf(own)).mode.mode === 'healthy', { timeoutMs: 30_000 })
  const before = await stateOf(own)
  const begun = performance.now()
  await eventually(() => performance.now() - begun > 4_000, { timeoutMs: 10_000 })
  const after = await stateOf(own)
  // wait/wakes.test.ts counts all queries in PostgreSQL. This test counts the two kinds that could grow
  // without bounds.
  t.ok(after.time.looks - before.time.looks <= 6, 'due polls')
  t.ok(
    (after.counters.fallbackChecks ?? 0) - (before.counters.fallbackChecks ?? 0) <= 2,
    'fallback polls',
  )
  gone.abort()
  await Promise.all(waiting)
})
