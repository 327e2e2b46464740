// A few nodes with the production core in a virtual network, and a record of everything they report.
import type { Hint, PeerEvent, PeerState } from '../../src/index.ts'
import { type NetworkOptions, VirtualNetwork } from '../simulation/virtual-network.ts'
import type { VirtualNode } from '../simulation/virtual-node.ts'

export interface ToldHint {
  readonly hint: Hint
  readonly from: string
  readonly at: number
  /** Defined if the sender asked this node before others. */
  readonly settle?: () => void
}

export interface Told {
  readonly hints: ToldHint[]
  readonly events: { readonly nodeId: string; readonly event: PeerEvent; readonly at: number }[]
  readonly lost: { readonly from: string; readonly count: number }[]
  readonly echoed: number[]
  readonly superseded: number[]
  /** The times at which the node reported its first contact with another node. */
  readonly contacts: number[]
}

export interface ClusterNode extends Told {
  readonly node: VirtualNode
  /** Called after every hint, after a report of lost hints, and at the first contact. */
  onTold: (() => void) | undefined
  /** Whether the node settles every hint at once. */
  settles: boolean
  stateOf(nodeId: string): PeerState | undefined
}

export class VirtualCluster {
  readonly network: VirtualNetwork
  readonly #nodes = new Map<number, ClusterNode>()
  #incarnation = 0

  constructor(options: Partial<NetworkOptions> = {}) {
    this.network = new VirtualNetwork({ seed: 1, ...options })
  }

  /** Starts `count` nodes that know the addresses of all others. */
  static of(count: number, options: Partial<NetworkOptions> = {}): VirtualCluster {
    const cluster = new VirtualCluster(options)
    for (let index = 0; index < count; index += 1) cluster.start(index)
    cluster.discoverAll()
    cluster.network.runFor(300)
    return cluster
  }

  start(index: number, address = addressOf(index), signer?: NetworkOptions['signer']): ClusterNode {
    this.#incarnation += 1
    const told: Told = {
      hints: [],
      events: [],
      lost: [],
      echoed: [],
      superseded: [],
      contacts: [],
    }
    const { network } = this
    const name = { nodeId: nodeIdOf(index), address, incarnation: this.#incarnation }
    const node = network.start(
      { ...name, signer },
      {
        onHint: (hint, from, settle) => {
          told.hints.push({ hint, from, at: network.now, ...(settle && { settle }) })
          if (this.#nodes.get(index)?.settles) settle?.()
          this.#nodes.get(index)?.onTold?.()
        },
        onContact: () => {
          told.contacts.push(network.now)
          this.#nodes.get(index)?.onTold?.()
        },
        onPeer: ({ nodeId }, event) => told.events.push({ nodeId, event, at: network.now }),
        onHintsLost: (from, count) => {
          told.lost.push({ from, count })
          this.#nodes.get(index)?.onTold?.()
        },
        onInterestEchoed: (version) => told.echoed.push(version),
        onSuperseded: (incarnation) => told.superseded.push(incarnation),
      },
    )
    const stateOf = (nodeId: string) =>
      node.core.peers(network.now + node.clockOffsetMs).find((peer) => peer.nodeId === nodeId)
        ?.state
    this.#nodes.set(index, { ...told, node, stateOf, onTold: undefined, settles: false })
    return this.at(index)
  }

  get nodes(): ClusterNode[] {
    return [...this.#nodes.values()]
  }

  at(index: number): ClusterNode {
    const node = this.#nodes.get(index)
    if (node === undefined) throw new RangeError(`no node ${index}`)
    return node
  }

  /** Gives a node waiters for these scopes, in one or more consumer groups. */
  wait(index: number, version: number, scopes: readonly string[], groups = ['g']): void {
    const entries = scopes.flatMap((scope) => groups.map((group) => ({ scope, group })))
    this.network.act(this.at(index).node, (core, now) =>
      core.setInterest({ version, entries }, now),
    )
  }

  discoverAll(): void {
    const addresses = this.nodes.map(({ node }) => node.address)
    for (const { node } of this.nodes) {
      if (node.isRunning) this.network.act(node, (core, now) => core.discovered(addresses, now))
    }
  }

  /** The state of each peer as a node sees it, by peer id. */
  statesSeenBy(index: number): Record<string, PeerState> {
    const { node } = this.at(index)
    const peers = node.core.peers(this.network.now + node.clockOffsetMs)
    return Object.fromEntries(peers.map(({ nodeId, state }) => [nodeId, state]))
  }
}

export function addressOf(index: number): string {
  return `10.0.${index >> 8}.${index & 255}:4601`
}

export function nodeIdOf(index: number): string {
  return `node-${index}`
}
