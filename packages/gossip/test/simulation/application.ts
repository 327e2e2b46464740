// The application on a simulated node: waiters for some scopes, each in a consumer group. They check a store
// that all nodes share, after a hint and, as a fallback, once a second.
import type { OutgoingHint, PeerEvent, PeerView } from '../../src/index.ts'
import type { VirtualNetwork } from './virtual-network.ts'
import type { VirtualNode } from './virtual-node.ts'

export const fallbackMs = 1_000
export const consumerGroups = ['g0', 'g1', 'g2'] as const

/** A scope and a consumer group. Each group gets every message of a scope. */
export type WaitKey = string

export function waitKey(scope: string, group: string): WaitKey {
  return `${scope} ${group}`
}

export interface Message {
  readonly pushedAt: number
}

/** The store of pushed messages. All nodes share it, as the nodes of a cluster share a database. */
export class Store {
  readonly #waiting = new Map<WaitKey, Message[]>()
  readonly latenciesMs: number[] = []
  readonly foundBy = { hint: 0, loss: 0, fallback: 0 }

  push(key: WaitKey, now: number): Message {
    const message = { pushedAt: now }
    this.#waiting.set(key, [...(this.#waiting.get(key) ?? []), message])
    return message
  }

  take(key: WaitKey, now: number, how: keyof Store['foundBy']): void {
    for (const { pushedAt } of this.#waiting.get(key) ?? []) {
      this.latenciesMs.push(now - pushedAt)
      this.foundBy[how] += 1
    }
    this.#waiting.delete(key)
  }

  has(key: WaitKey, message: Message): boolean {
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
  /** What the node has waiters for: since when, and since which version of the interest. */
  readonly waits = new Map<WaitKey, { readonly since: number; readonly version: number }>()
  /** What it had waiters for: when the last one left, in virtual time plus the jumps of the node's clock. */
  readonly withdrawn = new Map<WaitKey, { readonly at: number; readonly version: number }>()
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

  wait(key: WaitKey): void {
    if (this.waits.has(key)) return
    this.version += 1
    this.waits.set(key, { since: this.#network.now, version: this.version })
    this.withdrawn.delete(key)
    this.#tellInterest()
    this.#store.take(key, this.#network.now, 'fallback')
  }

  stopWaiting(key: WaitKey): void {
    const waited = this.waits.get(key)
    if (waited === undefined) return
    this.version += 1
    this.waits.delete(key)
    const at = this.#network.now + this.node.skippedMs
    this.withdrawn.set(key, { at, version: waited.version })
    this.#tellInterest()
  }

  /** Pushes a message for these consumer groups. Local waiters take it at once; if the node has contact, it
   * sends a hint for the other groups. */
  push(scope: string, groups: readonly string[], spread: 'one' | 'all'): Map<WaitKey, Message> {
    const { now } = this.#network
    const messages = new Map<WaitKey, Message>()
    for (const group of groups) {
      const key = waitKey(scope, group)
      messages.set(key, this.#store.push(key, now))
    }
    const served = new Set(groups.filter((group) => this.waits.has(waitKey(scope, group))))
    for (const group of served) this.#store.take(waitKey(scope, group), now, 'hint')
    if (!this.hasContact || served.size === groups.length) return messages
    const [only, ...others] = groups
    const group = others.length === 0 ? only : undefined
    const hint: OutgoingHint = {
      kind: group === undefined ? 'MESSAGE_AVAILABLE' : 'PARTITION_FREE',
      scope,
      count: 1,
      keys: [scope],
      labels: [group ?? null],
      group,
      served,
      spread,
    }
    this.#network.act(this.node, (core, nowMs) => core.hint(hint, nowMs))
    return messages
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

  /** Returns whether waiters took the messages of every consumer group that peers may expect here. */
  told(scope: string, group: string | null): boolean {
    const expected = this.node.core.advertisedGroups([scope])
    let isSettled = expected.size > 0
    for (const one of group === null ? expected : [group]) {
      const key = waitKey(scope, one)
      if (this.waits.has(key)) this.#store.take(key, this.#network.now, 'hint')
      else isSettled = false
    }
    return isSettled
  }

  check(how: 'loss' | 'fallback'): void {
    for (const key of this.waits.keys()) this.#store.take(key, this.#network.now, how)
  }

  #tellInterest(): void {
    const entries = Array.from(this.waits.keys(), (key) => {
      const [scope = '', group = ''] = key.split(' ')
      return { scope, group }
    })
    const interest = { version: this.version, entries }
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
