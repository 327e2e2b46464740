import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { eventually } from '@rouse/testkit'
import { test } from 'tap'
import type * as broker from '../src/index.ts'
import { apiOf } from './support/http.ts'

// As it ships, and typed from source: whoever checks types need not have built.
const built = new URL('../dist/index.js', import.meta.url).href
const { DevCluster } = (await import(built)) as typeof broker

/** Below those that systems hand out, or a connection of another test may have it by the time the node binds. */
const port = 20_000 + (process.pid % 10_000)

// Long, because tap's loaders come into every process that the cluster starts.
const timeout = 240_000

test('a development cluster tells where it is and mends what is killed', { timeout }, async (t) => {
  const dataDir = await mkdtemp(join(tmpdir(), 'rouse-dev-'))
  t.teardown(() => rm(dataDir, { recursive: true, force: true }))
  const lines: string[] = []
  const cluster = new DevCluster({
    nodes: 1,
    port,
    dataDir,
    say: (line: string) => lines.push(line),
  })
  t.teardown(() => cluster.stop())
  const described = async () => JSON.parse(await readFile(join(dataDir, 'cluster.json'), 'utf8'))

  await cluster.start()
  const before = await described()
  const url = `http://127.0.0.1:${port}`
  t.match(before, {
    url,
    nodes: [{ id: 'node-1', url, pid: Number, gossip: `127.0.0.1:${port + 1}` }],
    postgres: { url: /^postgres:\/\//, pid: Number },
  })
  t.match(lines.join('\n'), /curl .*\/api\/v1\/push.*curl .*\/api\/v1\/pop/s)
  t.equal((await apiOf(url).push({ queue: 'q', payload: 1 })).status, 201)

  process.kill(before.nodes[0].pid, 'SIGKILL')
  const patience = { timeoutMs: 60_000 }
  await eventually(async () => (await described()).nodes[0].pid !== before.nodes[0].pid, patience)
  process.kill(before.postgres.pid, 'SIGKILL')
  await eventually(async () => (await described()).postgres.pid !== before.postgres.pid, patience)
  t.equal((await described()).postgres.url, before.postgres.url)
  const api = apiOf(url)
  await eventually(
    async () => (await api.push({ queue: 'q', payload: 2 })).status === 201,
    patience,
  )
  t.ok((await api.get('/resources/queues/q')).body.messages >= 2, 'and the first message is there')
  t.match(lines.join('\n'), /node-1 ended .*PostgreSQL ended/s)

  await cluster.stop()
  await t.rejects(described(), { code: 'ENOENT' })
  await t.rejects(fetch(`${url}/live`))
})

test('a port that is taken is said in so many words', { timeout }, async (t) => {
  const taken = createServer()
  await new Promise<void>((resolve) => taken.listen(0, '127.0.0.1', resolve))
  t.teardown(() => taken.close())
  const { port } = taken.address() as { port: number }
  const dataDir = await mkdtemp(join(tmpdir(), 'rouse-dev-'))
  t.teardown(() => rm(dataDir, { recursive: true, force: true }))
  const cluster = new DevCluster({ nodes: 1, port, dataDir, say: () => {} })
  t.teardown(() => cluster.stop())
  await t.rejects(cluster.start(), { code: 'node_failed', message: /EADDRINUSE/ })
})
