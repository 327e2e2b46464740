// The application on a simulated node: waiters for some keys. They check a store that all nodes share, after
// a hint and, as a fallback, once a second.
import type { OutgoingHint, PeerEvent, PeerView } from '../../src/index.ts'
import type { VirtualNetwork } from './virtual-network.ts'
import type { VirtualNode } from './virtual-node.ts'

export const fallbackMs = 1_000

/** The store of pushed messages. All nodes share it, as the nodes of a cluster share a database. */
export class Store {
  readonly #waiting = new Map<string, { readonly pushedAt: number }[]>()
  readonly latenciesMs: number[] = []
  readonly foundBy = { hint: 0, loss: 0, fallback: 0 }

  push(key: string, now: number): { readonly pushedAt: number } {
    const message = { pushedAt: now }
    this.#waiting.set(key, [...(this.#waiting.get(key) ?? []), message])
    return message
  }

  take(key: string, now: number, how: keyof Store['foundBy']): void {
    for (const { pushedAt } of this.#waiting.get(key) ?? []) {
      this.latenciesMs.push(now - pushedAt)
      this.foundBy[how] += 1
    }
    this.#waiting.delete(key)
  }

  has(key: string, message: { readonly pushedAt: number }): boolean {
    return this.#waiting.get(key)?.includes(message) ?? false
  }

  get undelivered(): number {
    return Array.from(this.#waiting.values()).flat().length
  }
}

export class Application {
  readonly node: VirtualNode
  readonly #network: VirtualNetwork
  readonly #store: Store
  /** The keys with waiters: since when, and since which version of the interest. */
  readonly waits = new Map<string, { readonly since: number; readonly version: number }>()
  /** The keys without waiters: when the last one left, in virtual time plus the jumps of the node's clock. */
  readonly withdrawn = new Map<string, { readonly at: number; readonly version: number }>()
  version = 0
  echoed = 0
  /** Whether another node has made contact. From then on, the node sends hints. */
  hasContact = false
  /** The members that the node reported: the incarnation of each, and since when it is known. */
  readonly peers = new Map<string, { readonly incarnation: number; readonly since: number }>()
  readonly #gone = new Map<string, { readonly incarnation: number; readonly at: number }>()

  constructor(network: VirtualNetwork, store: Store, start: (app: Application) => VirtualNode) {
    this.#network = network
    this.#store = store
    this.node = start(this)
  }

  startFallback(): void {
    this.#pollLater()
  }

  wait(key: string): void {
    if (this.waits.has(key)) return
    this.version += 1
    this.waits.set(key, { since: this.#network.now, version: this.version })
    this.withdrawn.delete(key)
    this.#tellInterest()
    this.#store.take(key, this.#network.now, 'fallback')
  }

  stopWaiting(key: string): void {
    const waited = this.waits.get(key)
    if (waited === undefined) return
    this.version += 1
    this.waits.delete(key)
    const at = this.#network.now + this.node.skippedMs
    this.withdrawn.set(key, { at, version: waited.version })
    this.#tellInterest()
  }

  /**
   * Pushes a message. A local waiter takes it at once; without one, the node sends a hint if it has contact.
   */
  push(key: string): { readonly pushedAt: number } {
    const { now } = this.#network
    const message = this.#store.push(key, now)
    if (this.waits.has(key)) this.#store.take(key, now, 'hint')
    else if (this.hasContact)
      this.#network.act(this.node, (core, nowMs) => core.hint(hintOf(key), nowMs))
    return message
  }

  peerChanged({ nodeId, incarnation }: PeerView, event: PeerEvent): void {
    const { now } = this.#network
    if (event === 'joined') this.peers.set(nodeId, { incarnation, since: now })
    if (event !== 'dead' && event !== 'left') return
    this.peers.delete(nodeId)
    this.#gone.set(nodeId, { incarnation, at: now })
  }

  /** When the node removed this member; -Infinity if it did not. */
  gaveUpAt({ node }: Application): number {
    const gone = this.#gone.get(node.nodeId)
    return gone?.incarnation === node.incarnation ? gone.at : Number.NEGATIVE_INFINITY
  }

  knows(other: Application): boolean {
    return this.knownSince(other) < Number.POSITIVE_INFINITY
  }

  knownSince({ node }: Application): number {
    const peer = this.peers.get(node.nodeId)
    return peer?.incarnation === node.incarnation ? peer.since : Number.POSITIVE_INFINITY
  }

  told(key: string): void {
    if (this.waits.has(key)) this.#store.take(key, this.#network.now, 'hint')
  }

  check(how: 'loss' | 'fallback'): void {
    for (const key of this.waits.keys()) this.#store.take(key, this.#network.now, how)
  }

  #tellInterest(): void {
    const interest = { version: this.version, keys: [...this.waits.keys()] }
    this.#network.act(this.node, (core, nowMs) => core.setInterest(interest, nowMs))
  }

  #pollLater(): void {
    const { stalledUntil } = this.node
    const at = Math.max(this.#network.now + fallbackMs, stalledUntil)
    this.#network.at(at, () => {
      if (!this.node.isRunning) return
      if (this.#network.now >= this.node.stalledUntil) this.check('fallback')
      this.#pollLater()
    })
  }
}

function hintOf(key: string): OutgoingHint {
  return { kind: 'MESSAGE_AVAILABLE', scope: key, count: 1, keys: [key] }
}
