import type { Random } from '@rouse/testkit'
import type { VirtualNetwork } from './virtual-network.ts'
import type { VirtualNode } from './virtual-node.ts'

export function cutBoth(network: VirtualNetwork, one: VirtualNode, other: VirtualNode): void {
  network.cut(one.address, other.address)
  network.cut(other.address, one.address)
}

export function splitInTwo(
  network: VirtualNetwork,
  nodes: readonly VirtualNode[],
  random: Random,
): void {
  const left = new Set(nodes.filter(() => random.below(2) === 0))
  for (const one of left) {
    for (const other of nodes) if (!left.has(other)) cutBoth(network, one, other)
  }
}

/**
 * Cuts one direction before the other, and mends it before the other. So the first token that `there` returns
 * is old. `later` runs an action after a delay, unless the network has healed by then.
 */
export function failInTurn(
  network: VirtualNetwork,
  { address: here }: VirtualNode,
  { address: there }: VirtualNode,
  later: (afterMs: number, action: () => void) => void,
): void {
  network.cut(there, here)
  later(1_000, () => network.cut(here, there))
  later(8_000, () => network.mend(there, here))
}

export function changeQuality(network: VirtualNetwork, random: Random): void {
  Object.assign(network.quality, {
    loss: random.pick([0, 0.01, 0.05, 0.3, 0.6, 1]),
    duplication: random.pick([0, 0.2]),
    reordering: random.pick([0, 0.1, 0.5]),
    delayMs: random.pick([0.2, 2, 40]),
  })
}
