import { existsSync, readdirSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { eventually } from '@rouse/testkit'
import { test } from 'tap'
import {
  freePortBase,
  newDataFolder,
  type RunningDevCluster,
  startDevCluster,
  untilReady,
} from '../support/dev-cluster.ts'
import { apiOf } from '../support/http.ts'

const port = freePortBase()
const patience = { timeoutMs: 60_000 }
const timeout = 240_000
/** A process id above every valid one. */
const unusedPid = 2 ** 22 + 1

test('a development cluster prints its addresses and restarts killed processes', {
  timeout,
}, async (t) => {
  const cluster = await startDevCluster(t, { nodes: 2, port })
  const before = await untilReady(cluster)
  const url = `http://127.0.0.1:${port}`
  t.match(before, {
    url,
    nodes: [1, 2].map((number) => ({
      id: `node-${number}`,
      url: `http://127.0.0.1:${port + 10 * number}`,
      pid: Number,
      gossip: `127.0.0.1:${port + 10 * number + 1}`,
    })),
    postgres: { url: /^postgres:\/\//, pid: Number },
  })
  const example = /curl .*\/api\/v1\/push.*curl .*\/api\/v1\/pop/s
  await eventually(() => example.test(cluster.output()), patience)
  const api = apiOf(url)
  t.equal((await api.push({ queue: 'q', payload: 1 })).status, 201)

  const pidOf = async () => (await cluster.describe()).nodes[0]?.pid
  process.kill(before.nodes[0]?.pid as number, 'SIGKILL')
  t.equal((await api.push({ queue: 'q', payload: 2 })).status, 201, 'the other node still serves')
  await eventually(async () => (await pidOf()) !== before.nodes[0]?.pid, patience)
  t.equal(
    (await fetch(`${before.nodes[0]?.url}/live`)).status,
    200,
    'the file names it once it serves',
  )
  process.kill(before.postgres.pid, 'SIGKILL')
  await eventually(
    async () => (await cluster.describe()).postgres.pid !== before.postgres.pid,
    patience,
  )
  t.equal((await cluster.describe()).postgres.url, before.postgres.url)
  await eventually(
    async () => (await api.push({ queue: 'q', payload: 3 })).status === 201,
    patience,
  )
  t.ok(
    (await api.get('/resources/queues/q')).body.messages >= 3,
    'the first message is still stored',
  )
  t.match(cluster.output(), /node-1 exited .*PostgreSQL exited/s)

  cluster.child.kill('SIGTERM')
  t.equal(await cluster.exited, 0)
  await t.rejects(cluster.describe(), { code: 'ENOENT' })
  await t.rejects(fetch(`${url}/live`))
})

test('the error for a port in use names the port', { timeout }, async (t) => {
  const taken = createServer()
  await new Promise<void>((resolve) => taken.listen(port + 510, '127.0.0.1', resolve))
  t.teardown(() => taken.close())
  const cluster = await startDevCluster(t, { nodes: 1, port: port + 500 })
  t.equal(await cluster.exited, 1)
  t.match(cluster.output(), /node-1 did not start.*EADDRINUSE/s)
})

const stages = [
  ['while it is built', 'SIGTERM', ({ output }) => output() !== ''],
  ['while initdb runs', 'SIGINT', initialises],
  ['while PostgreSQL starts', 'SIGTERM', has('postgres/postmaster.pid')],
  ['while its nodes start', 'SIGINT', has('node-1.log')],
] as const satisfies [string, NodeJS.Signals, (cluster: RunningDevCluster) => boolean][]

for (const [stage, signal, isReached] of stages) {
  test(`${signal} ${stage} leaves nothing running`, { timeout }, async (t) => {
    const cluster = await startDevCluster(t, { nodes: 2, port })
    await eventually(() => isReached(cluster), patience)
    cluster.child.kill(signal)
    await eventually(() => cluster.child.exitCode !== null, { timeoutMs: 40_000 })
    t.equal(cluster.child.exitCode, 0)
    t.notMatch(cluster.output(), /Rouse is ready/)
    await t.rejects(cluster.describe(), { code: 'ENOENT' })
    await eventually(() => cluster.processes().length === 0, patience)
  })
}

test('a second cluster in the same folder is refused and does not disturb the first', {
  timeout,
}, async (t) => {
  const first = await startDevCluster(t, { nodes: 1, port })
  const before = await untilReady(first)
  const second = await startDevCluster(t, { nodes: 1, port: port + 100, dataDir: first.dataDir })
  t.equal(await second.exited, 1)
  t.match(second.output(), /is in use by process/)
  t.same(await first.describe(), before)
})

test('the cluster.json of a killed cluster is removed before PostgreSQL starts', {
  timeout,
}, async (t) => {
  const dataDir = await newDataFolder(t)
  const left = { nodes: [{ pid: unusedPid }], postgres: { pid: unusedPid } }
  await writeFile(join(dataDir, 'cluster.json'), JSON.stringify(left))
  const cluster = await startDevCluster(t, { nodes: 1, port, dataDir })
  await eventually(() => initialises(cluster), patience)
  await t.rejects(cluster.describe(), { code: 'ENOENT' })
})

test('cluster.json names a node that was restarted while PostgreSQL is frozen', {
  timeout,
}, async (t) => {
  const cluster = await startDevCluster(t, { nodes: 1, port })
  const { nodes, postgres } = await untilReady(cluster)
  const [{ pid, url }] = nodes as [(typeof nodes)[0]]
  const resume = () => process.kill(postgres.pid, 'SIGCONT')
  t.teardown(resume)
  process.kill(postgres.pid, 'SIGSTOP')
  process.kill(pid, 'SIGKILL')
  const pidOf = async () => (await cluster.describe()).nodes[0]?.pid
  const next = await eventually(async () => {
    const now = await pidOf()
    return now !== pid && now
  }, patience)
  t.ok(process.kill(next, 0), 'it lives')
  await eventually(async () => (await fetch(`${url}/ready`)).status === 503, patience)
  t.equal((await fetch(`${url}/live`)).status, 200, 'it is live but not ready')
  resume()
  await eventually(async () => (await fetch(`${url}/ready`)).ok, patience)
  t.equal(await pidOf(), next)
})

function initialises({ dataDir }: RunningDevCluster): boolean {
  return readdirSync(dataDir).some((name) => name.startsWith('postgres.init'))
}

function has(file: string): (cluster: RunningDevCluster) => boolean {
  return ({ dataDir }) => existsSync(join(dataDir, file))
}
