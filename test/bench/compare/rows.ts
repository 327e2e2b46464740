// The loads that builds are compared under. The load generator is always the one of this checkout.
import { randomUUID } from 'node:crypto'
import type { LoadJob } from '../http/load.ts'
import { finished, startLoad } from '../http/load-process.ts'
import { cpuMicros } from '../roundtrip/figures.ts'
import { openScenario, scenarios } from '../roundtrip/scenario.ts'
import { familyCpuSeconds } from '../support/family-cpu.ts'
import { startNodes } from '../support/nodes.ts'
import type { Round } from './ratio.ts'

export interface RowOptions {
  readonly name: string
  /** The checkout whose built nodes run. */
  readonly root: string
  readonly server: { readonly url: string; readonly pid: number }
  readonly databaseUrl: string
  /** Settings of the nodes. */
  readonly env?: Readonly<Record<string, string>> | undefined
}

export interface OpenRow {
  run(seconds: number): Promise<Round>
  stop(): Promise<void>
}

type Row = (options: RowOptions) => Promise<OpenRow>

/** Far from saturation: the CPU of waiting and waking counts. */
const roundtripPerSecond = 100

export const rows: Readonly<Record<string, Row>> = {
  'push-1': (options) => pushRow(options, 1, 50),
  'push-100': (options) => pushRow(options, 100, 8),
  'consume-1': (options) => consumeRow(options, 1, 50),
  'consume-100': (options) => consumeRow(options, 100, 8),
  roundtrip: roundtripRow,
}

export function openRow(options: RowOptions): Promise<OpenRow> {
  return (rows[options.name] as Row)(options)
}

async function pushRow(options: RowOptions, batch: number, connections: number): Promise<OpenRow> {
  return await oneNodeRow(options, async (url, seconds) => ({
    job: { kind: 'push', url, connections, batch, seconds, queue: randomUUID() },
  }))
}

/** Each run consumes what a push load stored just before it, uncounted. */
async function consumeRow(
  options: RowOptions,
  batch: number,
  connections: number,
): Promise<OpenRow> {
  return await oneNodeRow(options, async (url, seconds) => {
    const queue = randomUUID()
    const fill = { kind: 'push', url, connections: 8, batch: 100, seconds, queue } as const
    await finished(startLoad({ ...fill, seconds: batch === 1 ? 1 : 1.5 * seconds }))
    return { job: { kind: 'consume', url, connections, batch, seconds, queue, ackAndFetch: false } }
  })
}

async function oneNodeRow(
  { root, server, databaseUrl, env }: RowOptions,
  prepare: (url: string, seconds: number) => Promise<{ readonly job: LoadJob }>,
): Promise<OpenRow> {
  const nodes = await startNodes({ root, databaseUrl, count: 1, env })
  const cpuSeconds = (): number => {
    const { primaries, workers } = nodes.cpu()
    return primaries + workers + familyCpuSeconds(server.pid)
  }
  return {
    async run(seconds) {
      const { job } = await prepare(nodes.urls[0] as string, seconds)
      const before = cpuSeconds()
      const { messages, seconds: took } = await finished(startLoad(job))
      return {
        cpuMicros: ((cpuSeconds() - before) * 1e6) / messages,
        perSecond: messages / took,
      }
    },
    stop: () => nodes.stop(),
  }
}

async function roundtripRow({ root, server, databaseUrl }: RowOptions): Promise<OpenRow> {
  const scenario = scenarios['base']
  if (scenario === undefined) throw new Error('there is no base scenario')
  const bench = await openScenario({ root, server, databaseUrl, scenario })
  return {
    async run(seconds) {
      const figures = await bench.measure({ rate: roundtripPerSecond, seconds })
      return { cpuMicros: cpuMicros(figures), perSecond: figures.perSecond }
    },
    stop: () => bench.stop(),
  }
}
