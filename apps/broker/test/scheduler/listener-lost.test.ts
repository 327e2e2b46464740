// The connection that LISTENs is lost and restored, or does not exist.
import { eventually, testDatabase } from '@rouse/testkit'
import { test } from 'tap'
import { createLogger } from '../../src/log.ts'
import { Listener } from '../../src/scheduler/listener.ts'
import { startBroker } from '../support/broker.ts'
import { cuttableProxy } from '../support/cuttable-proxy.ts'
import { apiOf } from '../support/http.ts'
import { pass, stateOf, untilWaiting, wakesDuring } from '../support/node-state.ts'
import { sqlUser } from '../support/sql-user.ts'

/** Generous for a busy machine. The tests also count wake-ups, which is more precise. */
const slackMs = 5_000

test('a killed LISTEN connection is replaced', async (t) => {
  const node = await startBroker(t)
  const { rows } = await node.database.pool.query(
    `select pg_terminate_backend(pid) from pg_stat_activity
     where datname = current_database() and application_name like '% listener'`,
  )
  t.equal(rows.length, 1, 'one LISTEN connection')
  await eventually(async () => (await stateOf(node)).mode.why.includes('listener_lost'))
  t.equal((await stateOf(node)).mode.mode, 'aggressive')
  await eventually(async () => (await stateOf(node)).time.listener === 'up')
  const user = await sqlUser(t, node.database.url)
  const waiting = apiOf(node.url).pop('q', '?wait=true&timeout=20000')
  await untilWaiting(node, 'q', 1)
  const wakes = await wakesDuring(node, async () => {
    await user.query(`select rouse.enqueue('q', '1')`)
    t.equal((await waiting).status, 200)
  })
  t.equal(wakes.notify, 1, 'it LISTENs again')
})

test('without LISTEN a node polls faster, and slows down when LISTEN is restored', async (t) => {
  const database = await testDatabase(t, { instrumented: false })
  const proxy = await cuttableProxy(t, database.url)
  const own = await startBroker(t, {
    database,
    env: {
      ROUSE_LISTEN_URL: proxy.url,
      AGGRESSIVE_POLL_DURATION_MS: '500',
      AGGRESSIVE_EXIT_THRESHOLD: '2',
    },
  })
  const client = apiOf(own.url)
  const user = await sqlUser(t, database.url)
  t.match(await stateOf(own), { mode: { mode: 'healthy' }, time: { listener: 'up' } })
  proxy.cut()
  await eventually(async () => (await stateOf(own)).time.listener === 'down')
  t.match(await stateOf(own), { mode: { mode: 'aggressive', why: ['listener_lost'] } })
  const waiting = client.pop('q', '?wait=true&timeout=20000&autoAck=true')
  await untilWaiting(own, 'q', 1)
  const begun = performance.now()
  await user.query(`select rouse.enqueue('q', '1')`)
  t.equal((await waiting).status, 200, 'found without a notification')
  t.ok(performance.now() - begun < slackMs)
  await pass(1_500)
  t.equal((await stateOf(own)).mode.mode, 'aggressive', 'as long as LISTEN is lost')
  proxy.restore()
  await eventually(async () => (await stateOf(own)).time.listener === 'up', { timeoutMs: 15_000 })
  await eventually(async () => (await stateOf(own)).mode.mode === 'healthy', { timeoutMs: 15_000 })
  const heard = client.pop('q', '?wait=true&timeout=20000')
  await untilWaiting(own, 'q', 1)
  const wakes = await wakesDuring(own, async () => {
    await user.query(`select rouse.enqueue('q', '2')`)
    t.equal((await heard).status, 200)
  })
  t.match(wakes, { notify: 1, fallback: 0 })
})

test('messages enqueued without a listener are delivered when LISTEN is restored, at the latest', async (t) => {
  const database = await testDatabase(t, { instrumented: false })
  const proxy = await cuttableProxy(t, database.url)
  const own = await startBroker(t, { database, env: { ROUSE_LISTEN_URL: proxy.url } })
  const user = await sqlUser(t, database.url)
  proxy.cut()
  await eventually(async () => (await stateOf(own)).time.listener === 'down')
  await user.query(`select rouse.enqueue('q', '1')`)
  proxy.restore()
  t.equal((await apiOf(own.url).pop('q', '?wait=true&timeout=10000')).status, 200)
})

test('the listener stops although its server does not answer', async (t) => {
  const database = await testDatabase(t, { instrumented: false })
  const proxy = await cuttableProxy(t, database.url)
  const listener = new Listener({
    url: proxy.url,
    applicationName: 'test listener',
    log: createLogger({ level: 'silent', node: 'test', process: 'primary' }),
    random: () => 0,
    onDue() {},
    onUp() {},
    onDown() {},
  })
  await listener.start()
  t.equal(listener.state(), 'up')
  proxy.silence()
  // The server does not confirm the end of the connection. A listener that waited for it would not stop.
  await listener.stop()
  t.equal(listener.state(), 'down')
})

test('with ROUSE_NOTIFY=off nothing is notified, and a due poll finds messages within about a second', async (t) => {
  const database = await testDatabase(t, { instrumented: false })
  const own = await startBroker(t, { database, env: { ROUSE_NOTIFY: 'off' } })
  const user = await sqlUser(t, database.url)
  const heard: unknown[] = []
  user.on('notification', (notification) => heard.push(notification))
  await user.query('listen rouse_scheduled')
  const waiting = apiOf(own.url).pop('q', '?wait=true&timeout=20000')
  await untilWaiting(own, 'q', 1)
  const wakes = await wakesDuring(own, async () => {
    const begun = performance.now()
    await user.query(`select rouse.enqueue('q', '1')`)
    t.equal((await waiting).status, 200)
    t.ok(performance.now() - begun < 1_000 + slackMs)
  })
  t.match(wakes, { timer: 1, notify: 0 })
  await user.query('select 1')
  t.same(heard, [])
  t.match(await stateOf(own), { time: { listener: 'off' }, mode: { mode: 'healthy' } })
  const { rows } = await database.pool.query(
    `select from pg_stat_activity where datname = current_database() and application_name like '% listener'`,
  )
  t.equal(rows.length, 0)
})
