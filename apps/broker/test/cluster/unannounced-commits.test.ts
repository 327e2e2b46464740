// What one node committed and could not announce reaches those who wait at another: its worker died before it told, or it
// was killed, or its drain took too long, or its connection was lost before the answer.
import { eventually, type TestDatabase, testDatabase } from '@rouse/testkit'
import { type Test, test } from 'tap'
import { startCluster, startNode, statsOf, untilAllHeard } from '../support/cluster.ts'
import { cuttableWay } from '../support/cuttable-way.ts'
import { apiOf } from '../support/http.ts'
import { untilWaiting, wakesDuring } from '../support/node-state.ts'
import { childrenOf, killTree } from '../support/process-tree.ts'

/** Fallback checks so rare that none of them can be what woke a waiter, and no deadline before the test says so. */
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

/** A node killed between commit and hint: three heartbeats and a second, and here as much again for other work. */
const killedMsMax = 2_500 + 1_500

/** The last place of a push before it commits. */
const committing = 'push-general-woken'

async function untilCommitted({ pool }: TestDatabase): Promise<void> {
  await eventually(async () => (await pool.query('select from rouse.messages')).rowCount === 1)
}

/** Somebody waits at b, and a push through a is at its commit. */
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

test('a worker dies after its commit, before it sent a hint', { timeout }, async (t) => {
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
  t.ok((wakes.udp ?? 0) >= 1, 'told by the node that lost its worker')
  t.equal(wakes.fallback, 0)
})

test('a worker dies, and its statement commits after peers have polled', {
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
  t.ok((wakes.udp ?? 0) >= 2, 'told once more')
  t.equal(wakes.fallback, 0)
})

test('a node is killed after its commit, before it sent a hint', { timeout }, async (t) => {
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
    t.ok(tookMs < killedMsMax, `${tookMs} ms after it was killed`)
  })
  t.ok((wakes.udp ?? 0) >= 1, 'its silence is a reason to look')
  t.equal(wakes.fallback, 0)
})

test('a node ends because its drain takes too long, and what it left commits then', {
  timeout,
}, async (t) => {
  const { a, b, waiting, barrier, pushed } = await pushAboutToCommit(t)
  const before = (await statsOf(b.url)).wakes.udp ?? 0
  const wakes = await wakesDuring(b, async () => {
    t.same(await a.stop(), { code: 1, signal: null }, 'it says that something was left')
    await t.rejects(pushed)
    await eventually(async () => ((await statsOf(b.url)).wakes.udp ?? 0) > before)
    await untilWaiting(b, 'q', 1)
    await barrier.release()
    t.match(await waiting, { status: 200, body: { messages: [{ data: 'x' }] } })
  })
  t.ok((wakes.udp ?? 0) >= 2, 'told when it gave up, and by its silence')
  t.equal(wakes.fallback, 0)
  await eventually(async () => (await statsOf(b.url)).mode.why.includes('peer_silent'), {
    timeoutMs: 20_000,
  })
  const news = b.log.filter(({ msg, peer }) => msg === 'peer' && peer === 'node-1')
  t.notOk(
    news.some(({ event }) => event === 'left'),
    'it did not say goodbye',
  )
})

test('a push commits, and its connection is lost before the answer', { timeout }, async (t) => {
  const database = await testDatabase(t)
  const way = await cuttableWay(t, database.url)
  const a = await startNode(t, 0, { database, env: { ...env, ROUSE_DATABASE_URL: way.url } })
  const b = await startNode(t, 1, { database, env })
  await untilAllHeard([a, b])
  const waiting = apiOf(b.url).pop('q', query)
  await untilWaiting(b, 'q', 1)
  const barrier = await database.armBarrier(committing)
  const pushed = apiOf(a.url).push({ queue: 'q', payload: 'x' })
  await barrier.reached()
  way.hush()
  await barrier.release()
  await untilCommitted(database)
  await untilWaiting(b, 'q', 1)

  const wakes = await wakesDuring(b, async () => {
    way.cut()
    way.mend()
    t.match(await pushed, { status: 503, body: { code: 'outcome_unknown' } })
    t.match(await waiting, { status: 200, body: { messages: [{ data: 'x' }] } })
  })
  t.ok((wakes.udp ?? 0) >= 1, 'told by the node that lost its connection')
  t.equal(wakes.fallback, 0)
})
