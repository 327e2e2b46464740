// `npm run bench -- http [--only push,consume,wake,idle,crowd] [--seconds S] [--idle-seconds S] [--waiters
// N]`: one node with two workers, embedded PostgreSQL and the load generator, all on this machine. Reports
// CPU per message of the node and of PostgreSQL separately. Exits with 1 if a limit is exceeded.
import { randomUUID } from 'node:crypto'
import { parseArgs } from 'node:util'
import { startEmbeddedPostgres } from '@rouse/database'
import { push } from '@rouse/storage'
import pg from 'pg'
import { familyCpuSeconds } from '../support/family-cpu.ts'
import { percentiles, Verdict } from '../support/figures.ts'
import { startNode } from '../support/node.ts'
import type { LoadFigures, LoadJob } from './load.ts'
import { finished, startLoad } from './load-process.ts'
import { crowd, idle } from './waiters.ts'

const { values: flags } = parseArgs({
  options: {
    only: { type: 'string', default: 'push,consume,wake,idle,crowd' },
    seconds: { type: 'string', default: '4' },
    'idle-seconds': { type: 'string', default: '60' },
    waiters: { type: 'string', default: '10000' },
  },
})
const seconds = Number(flags.seconds)
const warmUpSeconds = 2
const parts = new Set(flags.only.split(','))
/**
 * For comparison: a C++ broker of the same design, with two nodes on a similar machine. Messages per second,
 * and µs of CPU per message, if known.
 */
const peer: Record<string, { perSecond: number; cpuUs?: number }> = {
  'push 1': { perSecond: 1_340, cpuUs: 948 },
  'push 10': { perSecond: 7_170, cpuUs: 230 },
  'push 100': { perSecond: 12_340, cpuUs: 145 },
  'pop + ack 1': { perSecond: 728 },
  'pop + ack 100': { perSecond: 9_641 },
}
const out = (line: string): void => void process.stdout.write(`${line}\n`)
const verdict = new Verdict()

const server = await startEmbeddedPostgres({
  settings: { shared_buffers: '512MB', max_wal_size: '4GB' },
})
const node = await startNode(server.url)
try {
  const bench = { node, server, verdict, out }
  if (parts.has('push') || parts.has('consume')) tellHead()
  if (parts.has('push')) await pushes()
  if (parts.has('consume')) await consumption()
  if (parts.has('wake')) await wakes()
  if (parts.has('idle')) {
    await idle(bench, { waiters: 500, groups: 50, seconds: Number(flags['idle-seconds']) })
  }
  if (parts.has('crowd')) await crowd(bench, Number(flags.waiters))
} finally {
  await node.stop()
  await server.stop()
}
process.exit(verdict.report(out))

async function pushes(): Promise<void> {
  for (const [batch, connections] of [
    [1, 64],
    [10, 32],
    [100, 8],
  ] as const) {
    const queue = randomUUID()
    const load = { url: node.url, connections, batch, seconds, queue }
    await throughput(`push ${batch}`, { kind: 'push', ...load })
  }
}

async function consumption(): Promise<void> {
  for (const ackAndFetch of [false, true]) {
    for (const [batch, connections] of [
      [1, 64],
      [100, 8],
    ] as const) {
      const queue = randomUUID()
      await fill(queue, batch * 20_000)
      const name = ackAndFetch ? `ack and fetch ${batch}` : `pop + ack ${batch}`
      const load = { url: node.url, connections, batch, seconds, queue }
      await throughput(name, { kind: 'consume', ...load, ackAndFetch })
    }
  }
}

async function wakes(): Promise<void> {
  const { wakesMs } = await run({ kind: 'wake', url: node.url, trials: 200, queue: randomUUID() })
  out(`wake, push sent to message received: ${percentiles(wakesMs)} (peer p50 17 ms)`)
}

function tellHead(): void {
  const columns = ['msg/s'.padStart(9), 'node µs'.padStart(9), 'PG µs'.padStart(8)]
  out(`${'case'.padEnd(34)}${columns.join('')}  against the peer`)
}

async function throughput(name: string, job: Extract<LoadJob, { batch: number }>): Promise<void> {
  // Warm up: V8 compiles hot code in the first seconds, but a node in production runs for weeks.
  await run({ ...job, seconds: warmUpSeconds })
  const before = { node: familyCpuSeconds(node.pid), postgres: familyCpuSeconds(server.pid) }
  const figures = await run(job)
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

function run(job: LoadJob): Promise<LoadFigures> {
  return finished(startLoad(job))
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
