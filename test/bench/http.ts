// `npm run bench -- http [--seconds S] [--idle-seconds S] [--waiters N]`: one node with two workers, embedded PostgreSQL
// and the load generator, all on this machine. CPU per message of the node and of PostgreSQL apart.
import { type ChildProcess, fork, spawn } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { startEmbeddedPostgres } from '@rouse/database'
import { push } from '@rouse/sidecar'
import pg from 'pg'
import { familyCpuSeconds, familyPids } from './family-cpu.ts'
import type { LoadFigures, LoadJob } from './http-load.ts'

const { values: flags } = parseArgs({
  options: {
    seconds: { type: 'string', default: '4' },
    'idle-seconds': { type: 'string', default: '10' },
    waiters: { type: 'string', default: '10000' },
  },
})
const seconds = Number(flags.seconds)
/** A broker of the same design in C++, two nodes on such a machine: messages a second, and µs of CPU each, if known. */
const peer: Record<string, { perSecond: number; cpuUs?: number }> = {
  'push 1': { perSecond: 1_340, cpuUs: 948 },
  'push 10': { perSecond: 7_170, cpuUs: 230 },
  'push 100': { perSecond: 12_340, cpuUs: 145 },
  'pop + ack 1': { perSecond: 728 },
  'pop + ack 100': { perSecond: 9_641 },
}
const out = (line: string): void => void process.stdout.write(`${line}\n`)

const server = await startEmbeddedPostgres({
  settings: { shared_buffers: '512MB', max_wal_size: '4GB' },
})
const node = await startNode()
try {
  out(
    'case'.padEnd(34) +
      'msg/s'.padStart(9) +
      'node µs'.padStart(9) +
      'PG µs'.padStart(8) +
      '  against the peer',
  )
  for (const [batch, connections] of [
    [1, 64],
    [10, 32],
    [100, 8],
  ] as const) {
    await throughput(`push ${batch}`, {
      kind: 'push',
      url: node.url,
      connections,
      batch,
      seconds,
      queue: randomUUID(),
    })
  }
  for (const ackAndFetch of [false, true]) {
    for (const [batch, connections] of [
      [1, 64],
      [100, 8],
    ] as const) {
      const queue = randomUUID()
      await fill(queue, batch * 20_000)
      const name = ackAndFetch ? `ack and fetch ${batch}` : `pop + ack ${batch}`
      await throughput(name, {
        kind: 'consume',
        url: node.url,
        connections,
        batch,
        seconds,
        queue,
        ackAndFetch,
      })
    }
  }
  const wakes = await load({ kind: 'wake', url: node.url, trials: 200, queue: randomUUID() })
  out(`wake, push sent to message received: ${percentiles(wakes.latenciesMs)} (peer p50 17 ms)`)
  await idle(500, 50, Number(flags['idle-seconds']))
  await crowd(Number(flags.waiters))
} finally {
  node.child.kill('SIGTERM')
  await once(node.child, 'exit')
  await server.stop()
}

async function throughput(name: string, job: LoadJob): Promise<void> {
  const before = { node: familyCpuSeconds(node.pid), postgres: familyCpuSeconds(server.pid) }
  const figures = await load(job)
  const perMessage = (now: number, then: number): number => ((now - then) * 1e6) / figures.messages
  const nodeUs = perMessage(familyCpuSeconds(node.pid), before.node)
  const postgresUs = perMessage(familyCpuSeconds(server.pid), before.postgres)
  const perSecond = figures.messages / figures.seconds
  const known = peer[name]
  const faster = known === undefined ? '' : `${(perSecond / known.perSecond).toFixed(1)}× the rate`
  const cheaper =
    known?.cpuUs === undefined
      ? ''
      : `, ${((nodeUs + postgresUs) / known.cpuUs).toFixed(2)} of the cost`
  out(
    name.padEnd(34) +
      Math.round(perSecond).toLocaleString('en').padStart(9) +
      nodeUs.toFixed(0).padStart(9) +
      postgresUs.toFixed(0).padStart(8) +
      `  ${faster}${cheaper}`,
  )
}

async function fill(queue: string, messages: number): Promise<void> {
  const client = new pg.Client({ connectionString: server.url })
  await client.connect()
  const payload = JSON.stringify({ text: 'x'.repeat(189) })
  for (let sent = 0; sent < Math.min(messages, 400_000); sent += 1000) {
    await push(
      client,
      Array.from({ length: 1000 }, (_, i) => ({
        queue,
        partition: `p${i % 100}`,
        id: randomUUID(),
        payload,
      })),
    )
  }
  await client.end()
}

async function idle(waiters: number, groups: number, idleSeconds: number): Promise<void> {
  const job: LoadJob = {
    kind: 'wait',
    url: node.url,
    waiters,
    groups,
    seconds: idleSeconds,
    pushes: 0,
  }
  const child = startLoad(job)
  await onMessage(child, 'waiting')
  await new Promise((resolve) => setTimeout(resolve, 2_000)) // the first queries of all of them are over
  const before = {
    commits: await commits(),
    cpu: familyCpuSeconds(server.pid),
    at: performance.now(),
  }
  await onMessage(child, 'waited')
  const tookSeconds = (performance.now() - before.at) / 1000
  const queries = ((await commits()) - before.commits) / tookSeconds
  const cores = (familyCpuSeconds(server.pid) - before.cpu) / tookSeconds
  await finished(child)
  out(
    `${waiters} idle waiters in ${groups} groups: ${queries.toFixed(2)} transactions/s, ${cores.toFixed(4)} core of PostgreSQL (peer 0.21)`,
  )
}

async function crowd(waiters: number): Promise<void> {
  const child = startLoad({
    kind: 'wait',
    url: node.url,
    waiters,
    groups: 100,
    seconds: 5,
    pushes: 50,
  })
  await onMessage(child, 'waited')
  const rss = familyPids(node.pid).map(residentMegabytes)
  const { latenciesMs } = await finished(child)
  out(
    `${waiters} waiters: ${rss.map((mb) => `${mb} MB`).join(' + ')} resident, a push answered: ${percentiles(latenciesMs)}`,
  )
}

function residentMegabytes(pid: number): number {
  const kilobytes = /VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))
  return Math.round(Number(kilobytes?.[1]) / 1024)
}

async function commits(): Promise<number> {
  const client = new pg.Client({ connectionString: server.url })
  await client.connect()
  const { rows } = await client.query<{ count: string }>(
    'select sum(xact_commit + xact_rollback) as count from pg_stat_database',
  )
  await client.end()
  return Number(rows[0]?.count)
}

function load(job: LoadJob): Promise<LoadFigures> {
  return finished(startLoad(job))
}

function startLoad(job: LoadJob): ChildProcess {
  return fork(fileURLToPath(new URL('./http-load.ts', import.meta.url)), [JSON.stringify(job)], {
    stdio: ['ignore', 'pipe', 'inherit', 'ipc'],
  })
}

async function finished(child: ChildProcess): Promise<LoadFigures> {
  let text = ''
  child.stdout?.on('data', (chunk: Buffer) => {
    text += chunk.toString()
  })
  const [code] = (await once(child, 'close')) as [number]
  if (code !== 0) throw new Error(`the load generator ended with ${code}`)
  return JSON.parse(text) as LoadFigures
}

async function onMessage(child: ChildProcess, wanted: string): Promise<void> {
  for (;;) {
    const [message] = (await once(child, 'message')) as [string]
    if (message === wanted) return
  }
}

function percentiles(sorted: readonly number[]): string {
  const at = (p: number): string =>
    (sorted[Math.floor((sorted.length - 1) * p)] ?? Number.NaN).toFixed(1)
  return `p50 ${at(0.5)} ms, p99 ${at(0.99)} ms, max ${at(1)} ms`
}

async function startNode(): Promise<{ url: string; pid: number; child: ChildProcess }> {
  const port = await freePort()
  const main = fileURLToPath(new URL('../../apps/broker/dist/main.js', import.meta.url))
  const child = spawn(process.execPath, [main], {
    stdio: ['ignore', 'ignore', 'inherit'],
    env: {
      ...process.env,
      ROUSE_DATABASE_URL: server.url,
      ROUSE_PORT: String(port),
      ROUSE_WORKERS: '2',
      ROUSE_LOG_LEVEL: 'error',
    },
  })
  const url = `http://127.0.0.1:${port}`
  for (;;) {
    const ready = await fetch(`${url}/ready`).catch(() => undefined)
    if (ready?.status === 200) return { url, pid: child.pid as number, child }
    if (child.exitCode !== null) throw new Error(`the node ended with ${child.exitCode}`)
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
}

async function freePort(): Promise<number> {
  const probe = createServer().listen(0, '127.0.0.1')
  await once(probe, 'listening')
  const { port } = probe.address() as { port: number }
  probe.close()
  await once(probe, 'close')
  return port
}
