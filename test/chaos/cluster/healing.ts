import { eventually } from '@rouse/testkit'
import type { ChaosCluster } from './chaos-cluster.ts'
import type { ChaosNode } from './chaos-node.ts'
import { signal } from './processes.ts'

/** This limit is for a busy machine; on a quiet one everything heals within seconds. */
export const healMsMax = 120_000

type Healed = Pick<ChaosCluster, 'nodes' | 'postgres' | 'wires' | 'disk' | 'fsync'>

/** Ends every fault that may be active, and waits until the cluster works. */
export async function heal({ nodes, postgres, wires, disk, fsync }: Healed): Promise<void> {
  wires.gossip.heal()
  await disk?.free()
  await fsync?.heal()
  for (const pid of nodes.flatMap((node) => node.pids())) signal(pid, 'SIGCONT')
  await postgres.heal()
  // The relays come last, because they may fence an old primary.
  for (const relay of [...wires.clients, ...wires.database.flat(), ...wires.sql]) {
    relay.set({ kind: 'forward' })
  }
  for (const node of nodes) node.release()
  await untilAllHear(nodes)
}

/** Waits until all nodes are ready and gossip works between all of them, in both directions. */
export async function untilAllHear(nodes: readonly ChaosNode[]): Promise<void> {
  await eventually(
    async () => {
      const ready = await Promise.all(nodes.map((node) => node.isReady()))
      const stats = await Promise.all(nodes.map((node) => node.stats()))
      return (
        ready.every(Boolean) &&
        stats.every(
          ({ peers }) =>
            peers.filter(({ state, hearsUs }) => state === 'alive' && hearsUs).length ===
            nodes.length - 1,
        )
      )
    },
    { timeoutMs: healMsMax, intervalMs: 100 },
  )
}
