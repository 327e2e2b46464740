// Two nodes on one embedded PostgreSQL. A trial is one push that wakes one waiter.
import { createHash } from 'node:crypto'
import { Agent, request } from 'node:http'
import { startEmbeddedPostgres } from '@rouse/database'
import { KeyRing } from '@rouse/gossip'
import { eventually, raiseLoopback } from '@rouse/testkit'
import pg from 'pg'
import { percentile } from '../support/figures.ts'
import { BenchNode, gossipSecret } from './node.ts'

export interface BenchCluster {
  readonly nodes: readonly [BenchNode, BenchNode]
  readonly overhear: () => Promise<Overheard>
  stop(): Promise<void>
}

/** The fields of a datagram that an attacker can read on the network. */
export interface Overheard {
  readonly cluster: number
  readonly keyId: number
}

export interface ClusterFigures {
  readonly p50: number
  readonly p99: number
  readonly max: number
  readonly within10Ms: number
  /** From sending the push to its response. */
  readonly pushP50?: number
  /** From sending the push to the response to the waiter. This includes a commit. */
  readonly wholeP50?: number
  readonly wholeP99?: number
  /** The sources of the wake-ups, from the node's counters. */
  readonly sources: string
}

interface Stats {
  readonly mode: { readonly mode: string }
  readonly peers: readonly { readonly state: string; readonly hearsUs?: boolean }[]
  readonly waiting: { readonly total: number }
  readonly wakes: Readonly<Record<string, number>>
  readonly group_backoff: { readonly groups_in_flight: number }
  readonly gossip: {
    readonly datagramsSent: number
    readonly datagramsReceived: number
    readonly drops: Readonly<Record<string, number>>
  }
}

const patience = { timeoutMs: 60_000 }

export async function startBenchCluster(): Promise<BenchCluster> {
  raiseLoopback()
  const server = await startEmbeddedPostgres()
  const nodes = [new BenchNode(server.url, 1), new BenchNode(server.url, 2)] as const
  for (const node of nodes) node.start()
  return {
    nodes,
    overhear: () => overhear(server.url),
    async stop() {
      await Promise.all(nodes.map((node) => node.stop()))
      await server.stop()
    },
  }
}

async function overhear(databaseUrl: string): Promise<Overheard> {
  const client = new pg.Client({ connectionString: databaseUrl })
  await client.connect()
  const { rows } = await client.query<{ id: string }>('select id from rouse.cluster')
  await client.end()
  const clusterId = rows[0]?.id ?? ''
  return {
    cluster: createHash('sha256').update(clusterId).digest().readUInt32BE(0),
    keyId: new KeyRing(clusterId, [gossipSecret]).keyId,
  }
}

export function benchCluster({ nodes }: BenchCluster) {
  const agent = new Agent({ keepAlive: true })
  let queues = 0

  const stats = async ({ url }: BenchNode): Promise<Stats> =>
    JSON.parse((await ask(agent, 'GET', `${url}/stats`)).text) as Stats

  async function untilHealthy(): Promise<void> {
    await eventually(async () => {
      const all = await Promise.all(nodes.map((node) => stats(node).catch(() => undefined)))
      return all.every(
        (one) =>
          one?.mode.mode === 'healthy' &&
          one.peers.length === 1 &&
          one.peers[0]?.state === 'alive' &&
          one.peers[0].hearsUs === true,
      )
    }, patience)
  }

  async function untilAggressive(node?: BenchNode): Promise<void> {
    await eventually(async () => {
      const all = await Promise.all((node === undefined ? nodes : [node]).map(stats))
      return all.every(({ mode }) => mode.mode === 'aggressive')
    }, patience)
  }

  /**
   * Measures the time until the waiter has its response, once from the response to the push, and once from
   * sending the push (`whole`).
   */
  async function wakes(from: BenchNode, to: BenchNode, trials: number): Promise<ClusterFigures> {
    await untilReady(nodes, stats)
    const before = (await stats(to)).wakes
    const took: number[] = []
    const tookWhole: number[] = []
    const pushes: number[] = []
    for (let i = 0; i < trials; i += 1) {
      queues += 1
      const queue = `q${queues % 20}`
      const path = `/api/v1/pop/queue/${queue}?wait=true&timeout=30000`
      let answeredAt = 0
      const waiter = ask(agent, 'GET', `${to.url}${path}`).then((answer) => {
        answeredAt = performance.now()
        return answer
      })
      await eventually(
        async () => {
          const { waiting, group_backoff: backoff } = await stats(to)
          return waiting.total === 1 && backoff.groups_in_flight === 0
        },
        { timeoutMs: 30_000, intervalMs: 5 },
      )
      const items = [{ queue, payload: i }]
      const sentAt = performance.now()
      await ask(agent, 'POST', `${from.url}/api/v1/push`, JSON.stringify({ items }))
      const pushedAt = performance.now()
      const { status, text } = await waiter
      if (status !== 200) throw new Error('a waiter got no message')
      took.push(Math.max(0, answeredAt - pushedAt))
      tookWhole.push(answeredAt - sentAt)
      pushes.push(pushedAt - sentAt)
      await acknowledge(to, text)
    }
    const after = (await stats(to)).wakes
    const [push, whole] = [figuresOf(pushes), figuresOf(tookWhole)]
    return {
      ...figuresOf(took),
      pushP50: push.p50,
      wholeP50: whole.p50,
      wholeP99: whole.p99,
      sources: sourcesOf(before, after),
    }
  }

  async function acknowledge(node: BenchNode, answer: string): Promise<void> {
    const { messages } = JSON.parse(answer) as { readonly messages: readonly Leased[] }
    const acknowledgments = messages.map(({ transactionId, partitionId, leaseId }) => {
      return { transactionId, partitionId, leaseId, status: 'completed' }
    })
    const body = JSON.stringify({ acknowledgments })
    const { status, text } = await ask(agent, 'POST', `${node.url}/api/v1/ack/batch`, body)
    if (status !== 200) throw new Error(`ack: ${status} ${text}`)
  }

  return { wakes, stats, untilHealthy, untilAggressive }
}

interface Leased {
  readonly transactionId: string
  readonly partitionId: string
  readonly leaseId: string
}

export function figuresOf(took: readonly number[]): Omit<ClusterFigures, 'sources'> {
  const sorted = [...took].sort((x, y) => x - y)
  const within = sorted.filter((ms) => ms <= 10).length
  return {
    p50: percentile(sorted, 0.5),
    p99: percentile(sorted, 0.99),
    max: percentile(sorted, 1),
    within10Ms: Math.round((100 * within) / sorted.length),
  }
}

async function untilReady(
  nodes: readonly BenchNode[],
  stats: (node: BenchNode) => Promise<Stats>,
): Promise<void> {
  await eventually(async () => {
    const all = await Promise.all(nodes.map((node) => stats(node).catch(() => undefined)))
    return all.every((one) => one !== undefined && one.peers.length === 1)
  }, patience)
}

function sourcesOf(before: Stats['wakes'], after: Stats['wakes']): string {
  const grown = Object.entries(after)
    .map(([source, count]) => [source, count - (before[source] ?? 0)] as const)
    .filter(([, count]) => count > 0)
  return grown.map(([source, count]) => `${source} ${count}`).join(', ')
}

function ask(
  agent: Agent,
  method: string,
  url: string,
  body?: string,
): Promise<{ status: number; text: string }> {
  return new Promise((resolve, reject) => {
    const headers = { 'content-type': 'application/json' }
    const call = request(url, { method, agent, headers }, (response) => {
      let text = ''
      response.setEncoding('utf8')
      response.on('data', (part: string) => {
        text += part
      })
      response.once('end', () => resolve({ status: response.statusCode ?? 0, text }))
    })
    call.once('error', reject)
    call.end(body)
  })
}
