import { testDatabase } from '@rouse/testkit'
import { test } from 'tap'
import { exchangeNodes, joinCluster, type NodeRecord, removeNode } from '../src/statements/nodes.ts'

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

test('processes of one cluster share its id and never an incarnation', async (t) => {
  const { pool } = await testDatabase(t)
  const [a, b] = [await joinCluster(pool), await joinCluster(pool)]
  t.match(a.clusterId, /^[0-9a-f-]{36}$/)
  t.equal(a.clusterId, b.clusterId)
  t.ok(b.incarnation > a.incarnation)
})

test('nodes find each other, and not themselves', async (t) => {
  const { pool } = await testDatabase(t)
  t.same(await exchangeNodes(pool, node('a', 1), freshMs), { written: true, others: [] })
  const { others } = await exchangeNodes(pool, node('b', 2), freshMs)
  t.match(others, [{ ...node('a', 1), uptimeMs: Number, silentMs: Number }])
  t.match((await exchangeNodes(pool, node('a', 1), freshMs)).others, [node('b', 2)])
  await removeNode(pool, node('b', 2), deadMs)
  t.same((await exchangeNodes(pool, node('a', 1), freshMs)).others, [])
})

test('of two processes with one id the later one keeps the row', async (t) => {
  const { pool } = await testDatabase(t)
  await exchangeNodes(pool, node('a', 2), freshMs)
  t.equal((await exchangeNodes(pool, node('a', 1), freshMs)).written, false)
  await removeNode(pool, node('a', 1), deadMs)
  t.match((await exchangeNodes(pool, node('b', 3), freshMs)).others, [node('a', 2)])
  t.equal((await exchangeNodes(pool, node('a', 4), freshMs)).written, true)
})

test('a node that stopped writing is soon no longer listed', async (t) => {
  const database = await testDatabase(t)
  const { pool } = database
  await database.freezeClock('2026-01-01T00:00:00Z')
  await exchangeNodes(pool, node('a', 1), freshMs)
  await database.advanceClock(freshMs - 1)
  t.equal((await exchangeNodes(pool, node('b', 2), freshMs)).others.length, 1)
  await database.advanceClock(2)
  t.equal((await exchangeNodes(pool, node('b', 2), freshMs)).others.length, 0)
})
