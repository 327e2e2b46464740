// The loads that builds are compared under. The load generator is always the one of this checkout.
import { randomUUID } from 'node:crypto'
import { eventually } from '@rouse/testkit'
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
  /** The node is closed, and every request has a key. */
  readonly hasKey?: boolean
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
  return await oneNodeRow(options, async (url, seconds, token) => ({
    job: { kind: 'push', url, connections, batch, seconds, queue: randomUUID(), token },
  }))
}

/** Each run consumes what a push load stored just before it, uncounted. */
async function consumeRow(
  options: RowOptions,
  batch: number,
  connections: number,
): Promise<OpenRow> {
  return await oneNodeRow(options, async (url, seconds, token) => {
    const load = { url, seconds, queue: randomUUID(), token } as const
    const fill = { ...load, kind: 'push', connections: 8, batch: 100 } as const
    await finished(startLoad({ ...fill, seconds: batch === 1 ? 1 : 2.5 * seconds }))
    return { job: { ...load, kind: 'consume', connections, batch, ackAndFetch: false } }
  })
}

async function oneNodeRow(
  { root, server, databaseUrl, env, hasKey = false }: RowOptions,
  prepare: (
    url: string,
    seconds: number,
    token: string | undefined,
  ) => Promise<{ readonly job: LoadJob }>,
): Promise<OpenRow> {
  const nodes = await startNodes({ root, databaseUrl, count: 1, env })
  const [url] = nodes.urls as [string]
  const token = hasKey ? await closeNode(url) : undefined
  const cpuSeconds = (): { readonly node: number; readonly postgres: number } => {
    const { primaries, workers } = nodes.cpu()
    return { node: primaries + workers, postgres: familyCpuSeconds(server.pid) }
  }
  return {
    async run(seconds) {
      const { job } = await prepare(url, seconds, token)
      const before = cpuSeconds()
      const { messages, seconds: took } = await finished(startLoad(job))
      const after = cpuSeconds()
      const postgresMicros = ((after.postgres - before.postgres) * 1e6) / messages
      const nodeMicros = ((after.node - before.node) * 1e6) / messages
      return {
        cpuMicros: nodeMicros + postgresMicros,
        postgresMicros,
        perSecond: messages / took,
      }
    },
    stop: () => nodes.stop(),
  }
}

/** Creates the first key, and another one for a worker. Resolves to that one when all processes of the node know it. */
async function closeNode(url: string): Promise<string> {
  const create = async (preset: string, token?: string): Promise<string> => {
    const answer = await fetch(`${url}/api/v1/keys`, {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
      },
      body: JSON.stringify({ name: 'bench', preset }),
    })
    if (answer.status !== 201) throw new Error(`no key: ${answer.status} ${await answer.text()}`)
    return ((await answer.json()) as { key: string }).key
  }
  const worker = await create('worker', await create('admin'))
  await eventually(async () => {
    const headers = { authorization: `Bearer ${worker}`, connection: 'close' }
    const asked = Array.from({ length: 20 }, () => fetch(`${url}/stats`, { headers }))
    const open = await fetch(`${url}/stats`, { headers: { connection: 'close' } })
    const statuses = (await Promise.all(asked)).map(({ status }) => status)
    return open.status === 401 && statuses.every((status) => status === 403)
  })
  return worker
}

async function roundtripRow({ root, server, databaseUrl, hasKey }: RowOptions): Promise<OpenRow> {
  if (hasKey === true) throw new Error('the row roundtrip has no form with a key')
  const scenario = scenarios['base']
  if (scenario === undefined) throw new Error('there is no base scenario')
  const bench = await openScenario({ root, server, databaseUrl, scenario })
  return {
    async run(seconds) {
      const figures = await bench.measure({ rate: roundtripPerSecond, seconds })
      return {
        cpuMicros: cpuMicros(figures),
        postgresMicros: figures.cpu.postgres,
        perSecond: figures.perSecond,
      }
    },
    stop: () => bench.stop(),
  }
}
