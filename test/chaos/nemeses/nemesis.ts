import { setTimeout as delay } from 'node:timers/promises'
import type { ChaosClient } from '../clients/chaos-client.ts'
import type { ChaosCluster } from '../cluster/chaos-cluster.ts'
import type { ChaosNode } from '../cluster/chaos-node.ts'
import type { MayHarm, QueueRecord } from '../history/records.ts'

export interface About {
  readonly random: () => number
  readonly seconds: number
  /** For faults that push and pop themselves: what they do is in the history as well. */
  readonly client: ChaosClient
  /** Of the run. */
  readonly queues: readonly QueueRecord[]
}

/** What was hit. Where it touches single queues, whose calls it may make slow. */
export interface Made {
  readonly target: string
  readonly mayHarm?: MayHarm
}

/** One fault: how it is made, and how it ends. */
export interface Nemesis {
  readonly name: string
  /** What it lacks here, in words (permission, program); undefined: it can run. */
  lacks(cluster: ChaosCluster): Promise<string | undefined>
  /** Makes the fault, holds it about `seconds`, heals it. Resolves once healed as far as it can tell. */
  run(cluster: ChaosCluster, about: About): Promise<Made>
  /** True where the database may forget its newest leases (crash, failover). */
  readonly forgetsLeases: boolean
  /** True where it touches single queues: others are held to a time. */
  readonly isLocal: boolean
}

interface NemesisParts {
  readonly forgetsLeases?: boolean
  readonly isLocal?: boolean
  readonly lacks?: Nemesis['lacks']
}

/** For faults that need nothing but the cluster. */
export function nemesis(name: string, run: Nemesis['run'], parts: NemesisParts = {}): Nemesis {
  const { forgetsLeases = false, isLocal = false, lacks = async () => undefined } = parts
  return { name, run, forgetsLeases, isLocal, lacks }
}

/** How long a node may need to be back on a machine that is busy with much else. */
export const readyMsMax = 60_000

export function pick<Item>(items: readonly Item[], random: () => number): Item {
  const item = items[Math.floor(random() * items.length)]
  if (item === undefined) throw new Error('there is nothing to pick from')
  return item
}

export function pause(seconds: number): Promise<void> {
  return delay(seconds * 1_000)
}

export async function untilReady(nodes: readonly ChaosNode[]): Promise<void> {
  await Promise.all(nodes.map((node) => node.untilReady(readyMsMax)))
}
