// A cluster of built nodes for a bench, of this or another checkout, and what it has used so far.
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { freePort } from '@rouse/testkit'
import { cpuSecondsOf, familyCpuSeconds } from './family-cpu.ts'

export interface BenchNodes {
  readonly urls: readonly string[]
  stats(): Promise<NodeStats[]>
  /** Resolves when no node is in aggressive mode, as it may be for a minute after a cold start under load. */
  untilHealthy(): Promise<void>
  /** CPU seconds so far. */
  cpu(): { readonly primaries: number; readonly workers: number }
  stop(): Promise<void>
}

/** The part of `/stats` that benches read. Fields that older builds lack are optional. */
export interface NodeStats {
  readonly mode: { readonly mode: string }
  readonly peers: readonly { readonly state: string; readonly hearsUs?: boolean }[]
  readonly queries: Readonly<Record<string, number>>
  readonly wakes: Readonly<Record<string, number>>
  readonly counters: Readonly<Record<string, unknown>>
  readonly gossip: { readonly datagramsSent: number; readonly hintDatagramsSent?: number }
  readonly ipc?: { readonly sends: number; readonly messages: number }
}

export interface NodesOptions {
  /** The checkout whose built program runs. */
  readonly root: string
  readonly databaseUrl: string
  readonly count: number
  readonly env?: Readonly<Record<string, string>> | undefined
}

const workersPerNode = 2

export async function startNodes(options: NodesOptions): Promise<BenchNodes> {
  const nodes = await Promise.all(
    Array.from({ length: options.count }, (_, i) => startNode(options, `node-${i + 1}`)),
  )
  const urls = nodes.map(({ url }) => url)
  const stats = (): Promise<NodeStats[]> => Promise.all(urls.map(readStats))
  await untilHealthy(stats, nodes)
  return {
    urls,
    stats,
    untilHealthy: () => untilHealthy(stats, nodes),
    cpu() {
      const primaries = sum(nodes.map(({ child }) => cpuSecondsOf(child.pid as number)))
      const all = sum(nodes.map(({ child }) => familyCpuSeconds(child.pid as number)))
      return { primaries, workers: all - primaries }
    },
    async stop() {
      await Promise.all(nodes.map(({ child }) => stopped(child)))
    },
  }
}

interface StartedNode {
  readonly url: string
  readonly child: ChildProcess
}

async function startNode(options: NodesOptions, nodeId: string): Promise<StartedNode> {
  const [port, gossipPort] = [await freePort(), await freePort()]
  const child = spawn(process.execPath, [join(options.root, 'apps/broker/dist/main.js')], {
    stdio: ['ignore', 'ignore', 'inherit'],
    env: {
      PATH: process.env.PATH,
      ROUSE_DATABASE_URL: options.databaseUrl,
      ROUSE_NODE_ID: nodeId,
      ROUSE_PORT: String(port),
      ROUSE_GOSSIP_PORT: String(gossipPort),
      ROUSE_GOSSIP_SECRET: 'a secret of this benchmark alone',
      ROUSE_WORKERS: String(workersPerNode),
      ROUSE_LOG_LEVEL: 'error',
      ...options.env,
    },
  })
  return { url: `http://127.0.0.1:${port}`, child }
}

/** All nodes serve with all workers, hear each other, and poll at long intervals. */
async function untilHealthy(
  stats: () => Promise<NodeStats[]>,
  nodes: readonly StartedNode[],
): Promise<void> {
  const endMs = performance.now() + 180_000
  for (;;) {
    const all = await stats().catch(() => [])
    const isHealthy = ({ mode, peers }: NodeStats): boolean =>
      mode.mode === 'healthy' &&
      peers.length === nodes.length - 1 &&
      peers.every(({ state, hearsUs }) => state === 'alive' && hearsUs === true)
    if (all.length === nodes.length && all.every(isHealthy)) return
    for (const { child } of nodes) {
      if (child.exitCode !== null) throw new Error(`a node ended with ${child.exitCode}`)
    }
    if (performance.now() > endMs) throw new Error('the nodes did not become healthy')
    await new Promise((resolve) => setTimeout(resolve, 100))
  }
}

async function readStats(url: string): Promise<NodeStats> {
  const answer = await fetch(`${url}/stats`)
  if (answer.status !== 200) throw new Error(`/stats: ${answer.status}`)
  return (await answer.json()) as NodeStats
}

async function stopped(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  child.kill('SIGTERM')
  await once(child, 'exit')
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, number) => total + number, 0)
}
