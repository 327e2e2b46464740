import { setTimeout as delay } from 'node:timers/promises'
import type { ChaosClient } from '../clients/chaos-client.ts'
import type { ChaosCluster } from '../cluster/chaos-cluster.ts'
import type { ChaosNode } from '../cluster/chaos-node.ts'
import type { MayHarm, QueueRecord } from '../history/records.ts'

export interface About {
  readonly random: () => number
  readonly seconds: number
  /** The client of faults that push and pop themselves; its calls are in the history, too. */
  readonly client: ChaosClient
  /** The queues of the run. */
  readonly queues: readonly QueueRecord[]
}

/** The target of a fault and, if it affects single queues, the queues whose calls it may slow down. */
export interface Made {
  readonly target: string
  readonly mayHarm?: MayHarm
}

/** One fault: how it is injected and healed. */
export interface Nemesis {
  readonly name: string
  /** The missing requirement (permission, program); undefined: the fault can be injected. */
  lacks(cluster: ChaosCluster): Promise<string | undefined>
  /**
   * Injects the fault, keeps it for about `seconds`, and heals it. Resolves when it is healed as far as the
   * nemesis can tell.
   */
  run(cluster: ChaosCluster, about: About): Promise<Made>
  /** True if the database may forget its newest leases, as after a crash or failover. */
  readonly forgetsLeases: boolean
  /** True if the fault affects only single queues. Time limits then apply to the other queues. */
  readonly isLocal: boolean
}

interface NemesisParts {
  readonly forgetsLeases?: boolean
  readonly isLocal?: boolean
  readonly lacks?: Nemesis['lacks']
}

/** Makes a nemesis. By default its fault needs nothing but the cluster. */
export function nemesis(name: string, run: Nemesis['run'], parts: NemesisParts = {}): Nemesis {
  const { forgetsLeases = false, isLocal = false, lacks = async () => undefined } = parts
  return { name, run, forgetsLeases, isLocal, lacks }
}

/** How long a node may take to return on a busy machine. */
export const readyMsMax = 60_000

export function pick<Item>(items: readonly Item[], random: () => number): Item {
  const item = items[Math.floor(random() * items.length)]
  if (item === undefined) throw new Error('nothing to pick from')
  return item
}

export function pause(seconds: number): Promise<void> {
  return delay(seconds * 1_000)
}

export async function untilReady(nodes: readonly ChaosNode[]): Promise<void> {
  await Promise.all(nodes.map((node) => node.untilReady(readyMsMax)))
}
