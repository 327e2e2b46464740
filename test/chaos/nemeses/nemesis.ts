import { setTimeout as delay } from 'node:timers/promises'
import type { ChaosCluster } from '../harness/chaos-cluster.ts'
import type { ChaosNode } from '../harness/chaos-node.ts'

export interface About {
  readonly random: () => number
  readonly seconds: number
}

/** One fault: how it is made, and how it ends. */
export interface Nemesis {
  readonly name: string
  /** What it lacks here, in words (permission, program); undefined: it can run. */
  lacks(cluster: ChaosCluster): Promise<string | undefined>
  /** Makes the fault, holds it about `seconds`, heals it. Resolves once healed as far as it can tell. */
  run(cluster: ChaosCluster, about: About): Promise<{ target: string }>
  /** True where the database may forget its newest leases (crash, failover). */
  readonly forgetsLeases: boolean
}

interface NemesisParts {
  readonly forgetsLeases?: boolean
  readonly lacks?: Nemesis['lacks']
}

/** For faults that need nothing but the cluster. */
export function nemesis(name: string, run: Nemesis['run'], parts: NemesisParts = {}): Nemesis {
  const { forgetsLeases = false, lacks = async () => undefined } = parts
  return { name, run, forgetsLeases, lacks }
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
