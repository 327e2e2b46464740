// A node survives failovers of its database without a restart and without losing acknowledged messages. All
// tests share one pair of servers and one node; each leaves a primary with a synchronous standby.
import { createInterface } from 'node:readline'
import { eventually, startPostgresPair, type TestDatabase } from '@rouse/testkit'
import { t as file, test } from 'tap'
import { spawnBroker } from '../support/broker.ts'
import { startFailoverLoad } from '../support/failover-load.ts'
import { apiOf, send } from '../support/http.ts'
import { sharedBroker, unique } from '../support/shared-broker.ts'

/** Time for servers to start, replay and copy on a busy machine. No assertion depends on their speed. */
const patience = { timeoutMs: 120_000, intervalMs: 50 }

/**
 * How long a node may take to use a server that accepts writes: the promised maximum. On a quiet machine it
 * takes a second, because the node checks about five times a second.
 */
const foundMsMax = 10_000

/** The same plus the time to notice that the old server is silent, which is 5 s on a quiet machine. */
const leftMsMax = 30_000

const pair = await startPostgresPair({ synchronous: true })
file.teardown(() => pair.stop())
const node = await sharedBroker({ database: { url: pair.url } as TestDatabase })
const api = apiOf(node.url)

/** Cancels every wait of a commit for the standby, until the request has its response. */
async function withCancelledWaits<T>(asked: Promise<T>): Promise<T> {
  let answered = false
  const answer = asked.finally(() => {
    answered = true
  })
  await eventually(async () => {
    await pair.primary.query(
      `select pg_cancel_backend(pid) from pg_stat_activity where wait_event = 'SyncRep'`,
    )
    return answered
  }, patience)
  return answer
}

test('a node follows a killed primary to its promoted standby, and its waiters keep waiting', async (t) => {
  const load = await startFailoverLoad(node.url, unique())
  const waiting = api.pop('late', '?wait=true&timeout=300000')
  await eventually(() => load.acknowledged.size > 100, patience)
  await pair.primary.kill()
  await pair.promoteStandby()
  await load.answeredAgain(foundMsMax)
  const late = { queue: 'late', payload: 'came' }
  await eventually(async () => (await api.push(late)).status === 201, patience)
  t.equal((await waiting).body?.messages[0].data, 'came', 'the waiter waited through the failover')
  await pair.rebuildStandby()
  await load.answeredAgain(patience.timeoutMs)
  t.same(await load.drain(), [], `${load.acknowledged.size} acknowledged pushes, none lost`)
  t.same(load.odd, [], 'no answer but 201 and 503')
  t.equal(node.child.exitCode, null, 'the node did not exit')
  t.notOk(
    node.log.some(({ msg }) => String(msg).startsWith('worker exited')),
    'its workers did not exit either',
  )
})

test('a node leaves a frozen primary for its promoted standby although its connections stay open', async (t) => {
  const load = await startFailoverLoad(node.url, unique())
  await eventually(() => load.acknowledged.size > 100, patience)
  pair.primary.freeze()
  await pair.promoteStandby()
  await load.answeredAgain(leftMsMax)
  t.equal(pair.standby.running, true, 'the frozen server still holds its connections')
  await pair.rebuildStandby()
  await load.answeredAgain(patience.timeoutMs)
  t.same(await load.drain(), [], `${load.acknowledged.size} acknowledged pushes, none lost`)
  t.same(load.odd, [], 'no answer but 201 and 503')
  const rows = await pair.standby.query<{ name: string }>(
    `select application_name as name from pg_stat_activity where application_name like 'rouse node%'`,
  )
  t.same(rows, [], 'no connection to the new standby is left')
})

test('while PostgreSQL is frozen /ready answers 503 in time, and its checks hold no connections', async (t) => {
  pair.primary.freeze()
  t.teardown(() => pair.primary.thaw())
  const asked = Array.from({ length: 30 }, () => send('GET', `${node.url}/ready`))
  for (const { status } of await Promise.all(asked)) t.equal(status, 503)
  pair.primary.thaw()
  await eventually(async () => (await send('GET', `${node.url}/ready`)).status === 200, patience)
  t.equal((await api.push({ queue: unique(), payload: 'after' })).status, 201)
})

test('a node leaves a server that became read-only for one that accepts writes', async (t) => {
  const queue = unique()
  const [old, next] = [pair.primary, pair.standby]
  await old.query('alter system set default_transaction_read_only = on')
  await old.query('select pg_reload_conf()')
  await eventually(async () => (await api.push({ queue, payload: 1 })).status === 503, patience)
  await pair.promoteStandby()
  await eventually(async () => (await api.push({ queue, payload: 2 })).status === 201, {
    timeoutMs: foundMsMax,
  })
  t.equal(pair.primary, next)
  await pair.rebuildStandby()
  t.equal((await api.push({ queue, payload: 3 })).status, 201)
})

test('a commit that the standby did not confirm is answered with outcome_unknown', async (t) => {
  const queue = unique()
  await api.push({ queue, payload: 'kept' })
  await pair.standby.kill()
  const pushed = await withCancelledWaits(api.push({ queue, payload: 'unconfirmed' }))
  t.match(pushed, { status: 503, body: { code: 'outcome_unknown' } }, 'a push')
  const options = { leaseTime: 7 }
  const configured = await withCancelledWaits(api.post('/configure', { queue: unique(), options }))
  t.match(configured, { status: 503, body: { code: 'outcome_unknown' } }, 'an administrative route')
  const schedule = { name: unique(), queue, cron: '0 0 1 1 *', payload: 1 }
  const scheduled = await withCancelledWaits(api.post('/schedules', schedule))
  t.match(scheduled, { status: 503, body: { code: 'outcome_unknown' } }, 'a schedule')
  const operations = [{ type: 'push', items: [{ queue, payload: 'too' }] }]
  const transacted = await withCancelledWaits(api.post('/transaction', { operations }))
  t.match(transacted, { status: 503, body: { code: 'outcome_unknown' } }, 'a transaction')
  await pair.standby.start()
  await pair.inSync()
})

test('a node that starts during a failover waits for its end', async (t) => {
  await pair.primary.kill()
  const child = spawnBroker({
    ROUSE_DATABASE_URL: pair.url,
    ROUSE_PORT: '0',
    ROUSE_GOSSIP_PORT: '0',
    ROUSE_WORKERS: '1',
    ROUSE_NODE_ID: 'late',
  })
  const exited = new Promise((resolve) => child.once('exit', resolve))
  t.teardown(async () => {
    child.kill('SIGTERM')
    await exited
  })
  const said: unknown[] = []
  createInterface({ input: child.stdout }).on('line', (line) => said.push(JSON.parse(line).msg))
  await eventually(() => said.includes('waiting for PostgreSQL'), patience)
  await pair.promoteStandby()
  await eventually(() => said.includes('node is ready'), patience)
  t.equal(child.exitCode, null)
})
