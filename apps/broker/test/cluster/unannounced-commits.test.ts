// A message that a node committed but could not announce still reaches waiters of another node. The reasons:
// its worker died, the node was killed, its drain took too long, or its connection was lost before the
// result.
import { eventually, type TestDatabase, testDatabase } from '@rouse/testkit'
import { type Test, test } from 'tap'
import { startCluster, startNode, statsOf, untilAllHeard } from '../support/cluster.ts'
import { cuttableProxy } from '../support/cuttable-proxy.ts'
import { apiOf } from '../support/http.ts'
import { untilWaiting, wakesDuring } from '../support/node-state.ts'
import { childrenOf, killTree } from '../support/process-tree.ts'

/** The interval of fallback polls. No poll wakes a waiter during the test. */
const never = '600000'
const env = {
  POP_WAIT_IDLE_INTERVAL_MS: never,
  POP_WAIT_BASE_INTERVAL_MS: never,
  POP_WAIT_MAX_INTERVAL_MS: never,
  ROUSE_WRITE_TIMEOUT_MS: '60000',
  ROUSE_WORKERS: '1',
}
const timeout = 120_000
const query = '?wait=true&timeout=30000&autoAck=true'

/** A killed node is noticed within 2.5 s: three heartbeats and a second. A busy machine gets 1.5 s more. */
const killedMsMax = 2_500 + 1_500

/** The last barrier of a push before it commits. */
const committing = 'push-general-woken'

async function untilCommitted({ pool }: TestDatabase): Promise<void> {
  await eventually(async () => (await pool.query('select from rouse.messages')).rowCount === 1)
}

/** Starts a pop that waits on node b, and a push through node a that is stopped before its commit. */
async function pushAboutToCommit(t: Test) {
  const database = await testDatabase(t)
  const [a, b] = await startCluster(t, { nodes: 2, database, env })
  if (a === undefined || b === undefined) throw new Error('two nodes')
  const waiting = apiOf(b.url).pop('q', query)
  await untilWaiting(b, 'q', 1)
  const barrier = await database.armBarrier(committing)
  const pushed = apiOf(a.url).push({ queue: 'q', payload: 'x' })
  pushed.catch(() => {})
  await barrier.reached()
  return { database, a, b, waiting, barrier, pushed }
}

test('a push wakes a waiter of another node although its worker died after the commit, before the hint', {
  timeout,
}, async (t) => {
  const { database, a, b, waiting, barrier, pushed } = await pushAboutToCommit(t)
  const [worker] = childrenOf(a.child.pid as number) as [number]
  process.kill(worker, 'SIGSTOP')
  await barrier.release()
  await untilCommitted(database)
  await untilWaiting(b, 'q', 1)

  const wakes = await wakesDuring(b, async () => {
    process.kill(worker, 'SIGKILL')
    await t.rejects(pushed)
    t.match(await waiting, { status: 200, body: { messages: [{ data: 'x' }] } })
  })
  t.ok((wakes.udp ?? 0) >= 1, 'hinted by the node that lost its worker')
  t.equal(wakes.fallback, 0)
})

test('a push of a dead worker that commits after its peers have polled still wakes a waiter', {
  timeout,
}, async (t) => {
  const { a, b, waiting, barrier, pushed } = await pushAboutToCommit(t)
  const before = (await statsOf(b.url)).wakes.udp ?? 0
  const wakes = await wakesDuring(b, async () => {
    for (const worker of childrenOf(a.child.pid as number)) process.kill(worker, 'SIGKILL')
    await t.rejects(pushed)
    await eventually(async () => ((await statsOf(b.url)).wakes.udp ?? 0) > before)
    await untilWaiting(b, 'q', 1)
    await barrier.release()
    t.match(await waiting, { status: 200, body: { messages: [{ data: 'x' }] } })
  })
  t.ok((wakes.udp ?? 0) >= 2, 'hinted a second time')
  t.equal(wakes.fallback, 0)
})

test('a push wakes a waiter of another node although its own node was killed before the hint', {
  timeout,
}, async (t) => {
  const { database, a, b, waiting, barrier, pushed } = await pushAboutToCommit(t)
  const [worker] = childrenOf(a.child.pid as number) as [number]
  process.kill(worker, 'SIGSTOP')
  await barrier.release()
  await untilCommitted(database)
  await untilWaiting(b, 'q', 1)

  const wakes = await wakesDuring(b, async () => {
    const killedAt = performance.now()
    await killTree(a.child)
    await t.rejects(pushed)
    t.match(await waiting, { status: 200, body: { messages: [{ data: 'x' }] } })
    const tookMs = Math.round(performance.now() - killedAt)
    t.ok(tookMs < killedMsMax, `delivered ${tookMs} ms after the kill`)
  })
  t.ok((wakes.udp ?? 0) >= 1, 'its silence caused a poll')
  t.equal(wakes.fallback, 0)
})

test('a push that commits after its node gave up draining wakes a waiter of another node', {
  timeout,
}, async (t) => {
  const { a, b, waiting, barrier, pushed } = await pushAboutToCommit(t)
  const before = (await statsOf(b.url)).wakes.udp ?? 0
  const wakes = await wakesDuring(b, async () => {
    t.same(await a.stop(), { code: 1, signal: null }, 'code 1 says that work was left unfinished')
    await t.rejects(pushed)
    await eventually(async () => ((await statsOf(b.url)).wakes.udp ?? 0) > before)
    await untilWaiting(b, 'q', 1)
    await barrier.release()
    t.match(await waiting, { status: 200, body: { messages: [{ data: 'x' }] } })
  })
  t.ok((wakes.udp ?? 0) >= 2, 'hinted when it gave up, and polled for its silence')
  t.equal(wakes.fallback, 0)
  await eventually(async () => (await statsOf(b.url)).mode.why.includes('peer_silent'), {
    timeoutMs: 20_000,
  })
  const news = b.log.filter(({ msg, peer }) => msg === 'peer changed state' && peer === 'node-1')
  t.notOk(
    news.some(({ event }) => event === 'left'),
    'it sent no leave message',
  )
})

test('a push whose connection to PostgreSQL is lost after the commit wakes a waiter of another node', {
  timeout,
}, async (t) => {
  const database = await testDatabase(t)
  const proxy = await cuttableProxy(t, database.url)
  const a = await startNode(t, 0, { database, env: { ...env, ROUSE_DATABASE_URL: proxy.url } })
  const b = await startNode(t, 1, { database, env })
  await untilAllHeard([a, b])
  const waiting = apiOf(b.url).pop('q', query)
  await untilWaiting(b, 'q', 1)
  const barrier = await database.armBarrier(committing)
  const pushed = apiOf(a.url).push({ queue: 'q', payload: 'x' })
  await barrier.reached()
  proxy.silence()
  await barrier.release()
  await untilCommitted(database)
  await untilWaiting(b, 'q', 1)

  const wakes = await wakesDuring(b, async () => {
    proxy.cut()
    proxy.restore()
    t.match(await pushed, { status: 503, body: { code: 'outcome_unknown' } })
    t.match(await waiting, { status: 200, body: { messages: [{ data: 'x' }] } })
  })
  t.ok((wakes.udp ?? 0) >= 1, 'hinted by the node that lost its connection')
  t.equal(wakes.fallback, 0)
})
