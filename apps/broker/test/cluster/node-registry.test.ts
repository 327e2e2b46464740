import {
  exchangeNodes,
  joinCluster,
  type NodeRecord,
  removeNode,
  type SeenNode,
} from '@rouse/storage'
import { eventually, testDatabase } from '@rouse/testkit'
import type pg from 'pg'
import { type Test, test } from 'tap'
import { systemClock } from '../../src/clock.ts'
import { createNodeRegistry } from '../../src/cluster/node-registry.ts'
import { createLogger } from '../../src/log.ts'

const freshMs = 15_000
const deadMs = 3_600_000

function node(id: string, incarnation: number): NodeRecord {
  return {
    id,
    incarnation,
    httpUrl: `http://${id}:4600`,
    gossipAddress: `${id}:4601`,
    version: '1',
  }
}

test('processes of one cluster have the same cluster id and different incarnations', async (t) => {
  const { pool } = await testDatabase(t)
  const [a, b] = [await joinCluster(pool), await joinCluster(pool)]
  t.match(a.clusterId, /^[0-9a-f-]{36}$/)
  t.equal(a.clusterId, b.clusterId)
  t.ok(b.incarnation > a.incarnation)
})

test('a node is given all other nodes, and not itself', async (t) => {
  const { pool } = await testDatabase(t)
  const first = await exchangeNodes(pool, node('a', 1), freshMs)
  t.match(first, { atMs: Number, written: true, namesake: undefined })
  t.same(first.others, [])
  const { others } = await exchangeNodes(pool, node('b', 2), freshMs)
  t.match(others, [{ ...node('a', 1), uptimeMs: Number, silentMs: Number }])
  t.match((await exchangeNodes(pool, node('a', 1), freshMs)).others, [node('b', 2)])
  await removeNode(pool, node('b', 2), deadMs)
  t.same((await exchangeNodes(pool, node('a', 1), freshMs)).others, [])
})

test('of two processes with one node id the later one keeps the row', async (t) => {
  const { pool } = await testDatabase(t)
  await exchangeNodes(pool, node('a', 2), freshMs)
  const earlier = await exchangeNodes(pool, node('a', 1), freshMs)
  t.match(earlier, { written: false, namesake: node('a', 2) })
  t.same(earlier.others, [])
  await removeNode(pool, node('a', 1), deadMs)
  t.match((await exchangeNodes(pool, node('b', 3), freshMs)).others, [node('a', 2)])
  t.equal((await exchangeNodes(pool, node('a', 4), freshMs)).written, true)
})

test('a node that stops writing is soon no longer listed', async (t) => {
  const database = await testDatabase(t)
  const { pool } = database
  await database.freezeClock('2026-01-01T00:00:00Z')
  await exchangeNodes(pool, node('a', 1), freshMs)
  await database.advanceClock(freshMs - 1)
  t.equal((await exchangeNodes(pool, node('b', 2), freshMs)).others.length, 1)
  await database.advanceClock(2)
  t.equal((await exchangeNodes(pool, node('b', 2), freshMs)).others.length, 0)
})

test('an earlier process takes over the row of a later one once that row is no longer fresh', async (t) => {
  const database = await testDatabase(t)
  const { pool } = database
  await database.freezeClock('2026-01-01T00:00:00Z')
  await exchangeNodes(pool, node('a', 9), freshMs)
  await database.advanceClock(freshMs - 1)
  t.equal((await exchangeNodes(pool, node('a', 4), freshMs)).written, false)
  await database.advanceClock(1)
  t.equal((await exchangeNodes(pool, node('a', 4), freshMs)).written, true)
})

test('a new incarnation is above that of every live node, even if the sequence was set back', async (t) => {
  const { pool } = await testDatabase(t)
  await pool.query("select setval('rouse.incarnations', 3)")
  await exchangeNodes(pool, node('a', 50), freshMs)
  await exchangeNodes(pool, node('b', 40), freshMs)
  t.equal((await joinCluster(pool)).incarnation, 51)
})

test('a process is superseded by a later one that writes, not by a row that a dead process left', async (t) => {
  const database = await testDatabase(t)
  const { pool } = database
  await database.freezeClock('2026-01-01T00:00:00Z')
  const later = async (): Promise<void> => {
    await exchangeNodes(pool, node('a', 9), freshMs)
  }
  await later()
  await database.advanceClock(1_000)
  const { directory, superseded, rounds } = await startDirectory(t, pool)
  /** Runs a round of the registry now, without waiting for the next scheduled one. */
  const look = async (): Promise<void> => {
    const before = rounds()
    directory.recheckIdentity()
    await eventually(() => rounds() > before)
  }
  await look()
  await database.advanceClock(1_000)
  await look()
  t.same(superseded, [], 'a row that is not written again does not count')
  await later()
  await look()
  t.match(superseded, [node('a', 9)])
})

test('a process whose row was taken over is notified once that it is superseded', async (t) => {
  const { pool } = await testDatabase(t)
  const { directory, superseded } = await startDirectory(t, pool)
  await eventually(async () => {
    await exchangeNodes(pool, node('a', 9), freshMs)
    directory.rewrite()
    return superseded.length > 0
  })
  directory.rewrite()
  await directory.stop()
  t.match(superseded, [node('a', 9)])
  t.equal(superseded.length, 1)
})

test('the age of a row keeps growing between two rounds', async (t) => {
  const { pool } = await testDatabase(t)
  await exchangeNodes(pool, node('b', 2), freshMs)
  let nowMs = 1_000
  const { directory } = await startDirectory(t, pool, { ...systemClock, nowMs: () => nowMs })
  const silentMs = () => directory.others()[0]?.silentMs ?? Number.NaN
  const atFirst = silentMs()
  nowMs += 7_000
  t.equal(silentMs(), atFirst + 7_000)
})

/** Starts the registry of node `a` with incarnation 4. */
async function startDirectory(t: Test, pool: pg.Pool, clock = systemClock) {
  let rounds = 0
  const superseded: SeenNode[] = []
  const directory = createNodeRegistry({
    pool,
    clock,
    log: createLogger({ level: 'silent', node: 'a', process: 'test' }),
    own: () => node('a', 4),
    onNodes: () => {
      rounds += 1
    },
    onSuperseded: (by) => superseded.push(by),
  })
  t.teardown(() => directory.stop())
  await directory.start()
  return { directory, superseded, rounds: () => rounds }
}
