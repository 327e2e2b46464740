// `npm run growth -- --minutes M [--rate R] [--nodes N]`: runs a cluster under a fixed load and compares its
// end with its start; see docs/growth.md. Exit codes: 0 no growth, 1 growth, 2 usage error.
import { parseArgs } from 'node:util'
import pg from 'pg'
import { familyCpuSeconds } from '../../bench/support/family-cpu.ts'
import { percentile } from '../../bench/support/figures.ts'
import { type GrowthCluster, startGrowthCluster } from './growth-cluster.ts'
import { type Figures, judge, type Run, sentence, type WindowFigures } from './judge.ts'
import { Load } from './load.ts'
import { readLag, readMemory, readPending, readTables } from './readings.ts'
import { tableText } from './table-text.ts'

const sampleMs = 5_000

const flags = readFlags()
if (flags === undefined) {
  process.stderr.write(
    'usage: npm run growth -- --minutes M [--rate R] [--nodes N], M at least 2\n',
  )
  process.exit(2)
}
process.exit(await main(flags))

interface Flags {
  readonly minutes: number
  readonly rate: number
  readonly nodes: number
}

function readFlags(): Flags | undefined {
  try {
    const { values } = parseArgs({
      options: {
        minutes: { type: 'string' },
        rate: { type: 'string', default: '300' },
        nodes: { type: 'string', default: '2' },
      },
    })
    const [minutes, rate, nodes] = [values.minutes, values.rate, values.nodes].map(Number) as [
      number,
      number,
      number,
    ]
    const isUsable = minutes >= 2 && rate > 0 && Number.isInteger(nodes) && nodes > 0 && nodes <= 8
    return isUsable ? { minutes, rate, nodes } : undefined
  } catch {
    return undefined
  }
}

async function main({ minutes, rate, nodes }: Flags): Promise<number> {
  // After about two minutes, retention removes as many rows as are added. Before that, tables may grow.
  const warmUpMs = Math.min(2, minutes / 3) * 60_000
  const windowMs = Math.min(4, minutes / 4) * 60_000
  const cluster = await startGrowthCluster(nodes)
  const client = new pg.Client({ connectionString: cluster.server.url })
  await client.connect()
  const load = new Load(
    cluster.nodes.map(({ url }) => url),
    rate,
  )
  const watch = { cluster, client, load }
  try {
    await load.start()
    const begunMs = performance.now()
    say(`warm-up, ${(warmUpMs / 60_000).toFixed(1)} minutes`)
    await pause(warmUpMs)
    const start = await observe(watch, windowMs)
    say(
      `start: ${start.nodeUs.toFixed(0)} µs of nodes, ${start.postgresUs.toFixed(0)} µs of PostgreSQL per message`,
    )
    await pause(minutes * 60_000 - (performance.now() - begunMs) - windowMs)
    const end = await observe(watch, windowMs)
    return tell({ minutes, rate, nodes, failedRequests: load.failedRequests, start, end })
  } finally {
    await load.stop()
    await client.end()
    await cluster.stop()
  }
}

interface Watch {
  readonly cluster: GrowthCluster
  readonly client: pg.Client
  readonly load: Load
}

/** Measures one window of time. It reads rows and sizes at the end of the window, and memory during it. */
async function observe({ cluster, client, load }: Watch, windowMs: number): Promise<Figures> {
  const cpu = (): { nodes: number; postgres: number } => ({
    nodes: cluster.nodes.reduce((sum, { pid }) => sum + familyCpuSeconds(pid), 0),
    postgres: familyCpuSeconds(cluster.server.pid),
  })
  load.takeLatencies()
  const [before, pushedBefore, begunMs] = [cpu(), load.pushed, performance.now()]
  const memory: Record<string, number>[] = []
  while (performance.now() - begunMs < windowMs) {
    await pause(Math.min(sampleMs, windowMs - (performance.now() - begunMs)))
    memory.push(readMemory(cluster))
  }
  const [after, pushed, seconds] = [
    cpu(),
    load.pushed - pushedBefore,
    (performance.now() - begunMs) / 1_000,
  ]
  const window: WindowFigures = {
    messagesPerSecond: pushed / seconds,
    nodeUs: ((after.nodes - before.nodes) * 1e6) / pushed,
    postgresUs: ((after.postgres - before.postgres) * 1e6) / pushed,
    ...latencies(load),
  }
  return {
    ...window,
    memoryMb: medians(memory),
    tables: await readTables(client),
    lagSeconds: await readLag(client),
    pending: await readPending(client),
  }
}

function latencies(load: Load): Omit<WindowFigures, 'messagesPerSecond' | 'nodeUs' | 'postgresUs'> {
  const { pushesMs, deliveriesMs } = load.takeLatencies()
  const [pushes, deliveries] = [pushesMs, deliveriesMs].map((list) =>
    list.sort((a, b) => a - b),
  ) as [number[], number[]]
  return {
    pushP50Ms: percentile(pushes, 0.5),
    pushP99Ms: percentile(pushes, 0.99),
    deliveryP50Ms: percentile(deliveries, 0.5),
    deliveryP99Ms: percentile(deliveries, 0.99),
  }
}

/** Returns the median of the samples per process, so that garbage collection does not count as growth. */
function medians(samples: readonly Readonly<Record<string, number>>[]): Record<string, number> {
  const names = Object.keys(samples.at(-1) ?? {})
  return Object.fromEntries(
    names.map((name) => {
      const values = samples.map((sample) => sample[name] ?? Number.NaN).sort((a, b) => a - b)
      return [name, values[Math.floor(values.length / 2)] as number]
    }),
  )
}

function tell(run: Run): number {
  for (const line of tableText(run)) say(line)
  const reasons = judge(run)
  for (const reason of reasons) say(`growth: ${reason}`)
  say(sentence(run))
  return reasons.length === 0 ? 0 : 1
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, Math.max(0, ms)))
}

function say(line: string): void {
  process.stdout.write(`${line}\n`)
}
