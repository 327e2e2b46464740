// Faults of the datagrams between nodes.
import type { ChaosCluster } from '../cluster/chaos-cluster.ts'
import type { UdpFault } from '../network/udp-relay.ts'
import { type Nemesis, nemesis, pause, pick, untilReady } from './nemesis.ts'

const all = { loss: 1 }

/** Drops all datagrams between all nodes. */
export const udpCut = everywhere('udp-cut', all)

/** One node receives nothing, but its own datagrams arrive. */
export const udpOneWay = nemesis('udp-one-way', async (cluster, { random, seconds }) => {
  const deaf = pick([...cluster.nodes.keys()], random)
  for (const from of cluster.nodes.keys()) cluster.wires.gossip.harm(from, deaf, { ...all, random })
  await healAfter(cluster, seconds)
  return { target: `to ${cluster.nodes[deaf]?.id}` }
})

export const udpLoss = everywhere('udp-loss', { loss: 0.3 })
export const udpDuplicate = everywhere('udp-duplicate', { duplication: 1 })
export const udpReorder = everywhere('udp-reorder', { delayMsMax: 300 })
export const udpCorrupt = everywhere('udp-corrupt', { corruption: 0.2 })

function everywhere(name: string, fault: UdpFault): Nemesis {
  return nemesis(name, async (cluster, { random, seconds }) => {
    for (const from of cluster.nodes.keys()) {
      for (const to of cluster.nodes.keys()) {
        cluster.wires.gossip.harm(from, to, { ...fault, random })
      }
    }
    await healAfter(cluster, seconds)
    return { target: 'all nodes' }
  })
}

async function healAfter({ wires, nodes }: ChaosCluster, seconds: number): Promise<void> {
  try {
    await pause(seconds)
  } finally {
    wires.gossip.heal()
  }
  await untilReady(nodes)
}
