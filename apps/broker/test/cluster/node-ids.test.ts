// Processes with the same node id: one after the other, or by mistake at the same time.

import { exchangeNodes, joinCluster } from '@rouse/storage'
import { eventually, type TestDatabase, testDatabase } from '@rouse/testkit'
import { test } from 'tap'
import type { RunningBroker } from '../support/broker.ts'
import { startNode } from '../support/cluster.ts'
import { apiOf, send } from '../support/http.ts'
import { childrenOf, killTree } from '../support/process-tree.ts'

const timeout = 240_000
/** Long enough for one round of the node registry on a busy machine. */
const patience = { timeoutMs: 60_000 }
const hourMs = 3_600_000

test('of two processes with one node id the older one logs it once and exits, and the newer one serves', {
  timeout,
}, async (t) => {
  const older = await startNode(t, 0, {})
  const newer = await startNode(t, 0, { database: older.database })
  t.match(await endOf(older), { code: 1, signal: null })
  t.match(complaints(older), [/^ROUSE_NODE_ID is "node-1" here and in another process.* stops$/])
  t.equal(complaints(older).length, 1)
  t.ok(await serves(newer))
  t.same(complaints(newer), [])
})

test('a process that was stopped while its successor started exits when it resumes', {
  timeout,
}, async (t) => {
  const older = await startNode(t, 0, {})
  const pids = [older.child.pid as number, ...childrenOf(older.child.pid as number)]
  for (const pid of pids) process.kill(pid, 'SIGSTOP')
  const newer = await startNode(t, 0, { database: older.database })
  for (const pid of pids) process.kill(pid, 'SIGCONT')
  t.match(await endOf(older), { code: 1, signal: null })
  t.equal(complaints(older).length, 1)
  t.ok(await serves(newer))
})

test('a draining process finishes its drain when its successor starts', {
  timeout,
}, async (t) => {
  const database = await testDatabase(t)
  await listUnsettled(database)
  const older = await startNode(t, 0, { database })
  await apiOf(older.url).push({ queue: 'q', payload: 0 })
  const barrier = await database.armBarrier('pop-begun')
  const popping = apiOf(older.url).pop('q')
  await barrier.reached()
  older.child.kill('SIGTERM')
  await eventually(async () => (await send('GET', `${older.url}/ready`)).status === 503)

  const starting = startNode(t, 0, { database })
  // Write the row of the successor now: the pop cannot stay at the barrier until the successor writes it.
  const { incarnation } = await joinCluster(database.pool)
  await exchangeNodes(database.pool, { ...unsettled, id: 'node-1', incarnation }, hourMs)
  const learned = 'another process with this node id started later'
  await eventually(() => older.log.some(({ msg }) => msg === learned), patience)
  await barrier.release()
  t.equal((await popping).status, 200)
  t.match(await endOf(older), { code: 0, signal: null })
  t.same(complaints(older), [])
  t.ok(await serves(await starting))
})

test('a killed node returns with its id', { timeout }, async (t) => {
  const first = await startNode(t, 0, {})
  await killTree(first.child)
  const again = await startNode(t, 0, { database: first.database })
  const seenAt = await lastSeenAt(first.database)
  await eventually(async () => (await lastSeenAt(first.database)) > seenAt, patience)
  t.equal(again.child.exitCode, null)
  t.ok(await serves(again))
  t.same(complaints(again), [])
})

test('a job that hangs blocks neither the drain nor the exit of a node', {
  timeout,
}, async (t) => {
  const database = await testDatabase(t)
  const node = await startNode(t, 0, { database, env: { ROUSE_DRAIN_DELAY_MS: '5000' } })
  const barrier = await database.armBarrier('promote-locked')
  await apiOf(node.url).push({ queue: 'q', payload: 0, delayMs: 1 })
  await barrier.reached()
  node.child.kill('SIGTERM')
  await eventually(async () => (await send('GET', `${node.url}/ready`)).status === 503)
  t.match(await endOf(node), { code: 1, signal: null }, 'code 1 says that work was left unfinished')
})

/** Resolves to the exit code once the last log line has arrived, which may be after the exit. */
async function endOf({ exited, log }: RunningBroker): Promise<object> {
  const how = await exited
  await eventually(() => log.at(-1)?.msg === 'stopped')
  return how
}

/** The messages that the node logged at level error or above. */
function complaints({ log }: RunningBroker): unknown[] {
  return log.filter(({ level }) => level === 'error' || level === 'fatal').map(({ msg }) => msg)
}

async function serves({ url }: RunningBroker): Promise<boolean> {
  await apiOf(url).push({ queue: 'served', payload: 1 })
  return (await apiOf(url).pop('served', '?autoAck=true')).status === 200
}

const unsettled = { httpUrl: null, gossipAddress: '127.0.0.1:9', version: '1' }

/** Lists a node without an address. While there is one, the other nodes read the registry twice a second. */
async function listUnsettled({ pool }: TestDatabase): Promise<void> {
  await exchangeNodes(pool, { ...unsettled, id: 'starting', incarnation: 1 }, hourMs)
  await pool.query("update rouse.nodes set last_seen_at = last_seen_at + interval '1 hour'")
}

async function lastSeenAt({ pool }: TestDatabase): Promise<Date> {
  const { rows } = await pool.query<{ last_seen_at: Date }>('select last_seen_at from rouse.nodes')
  return rows[0]?.last_seen_at ?? new Date(0)
}
