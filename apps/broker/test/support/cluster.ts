import { eventually, type TestDatabase } from '@rouse/testkit'
import type { Test } from 'tap'
import { type RunningBroker, startBroker } from './broker.ts'
import { send } from './http.ts'

/** Longer than nodes need to find each other on a busy machine. */
const patience = { timeoutMs: 20_000 }

export interface ClusterOptions {
  readonly nodes: number
  readonly database?: TestDatabase
  readonly env?: Readonly<Record<string, string>>
}

/** Starts nodes on one database. Resolves when they have heard each other. */
export async function startCluster(t: Test, options: ClusterOptions): Promise<RunningBroker[]> {
  const first = await startNode(t, 0, options)
  const others = await Promise.all(
    Array.from({ length: options.nodes - 1 }, (_, i) =>
      startNode(t, i + 1, { ...options, database: first.database }),
    ),
  )
  const cluster = [first, ...others]
  await untilAllHeard(cluster)
  return cluster
}

export function startNode(
  t: Test,
  index: number,
  { database, env }: Omit<ClusterOptions, 'nodes'>,
): Promise<RunningBroker> {
  return startBroker(t, {
    ...(database === undefined ? {} : { database }),
    env: { ROUSE_NODE_ID: `node-${index + 1}`, ...env },
  })
}

/** Resolves when every node hears all the others and is heard by them. */
export async function untilAllHeard(cluster: readonly RunningBroker[]): Promise<void> {
  await eventually(async () => {
    const answers = await Promise.all(cluster.map(({ url }) => statsOf(url)))
    return answers.every(
      ({ peers, mode }) =>
        mode.mode === 'healthy' &&
        peers.filter(({ state, hearsUs }) => state === 'alive' && hearsUs).length ===
          cluster.length - 1,
    )
  }, patience)
}

export interface PeerStats {
  readonly id: string
  readonly state: string
  readonly hearsUs?: boolean
  readonly hintsSent?: number
  readonly hintsReceived?: number
}

export interface NodeStats {
  readonly node: string
  readonly peers: readonly PeerStats[]
  readonly mode: { readonly mode: string; readonly why: readonly string[] }
  readonly wakes: Readonly<Record<string, number>>
  readonly waiting: { readonly total: number }
}

export async function statsOf(url: string): Promise<NodeStats> {
  return (await send('GET', `${url}/stats`)).body as NodeStats
}
