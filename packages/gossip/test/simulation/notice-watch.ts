// Checks that waiters learn of pushes. A hint may be lost. But once the network between pusher and waiter
// works, heartbeats report the loss within about two heartbeat intervals, unless the waiter saw the other
// node join or leave in the meantime. If no hint was lost, no loss is reported. A hint that one peer gets
// first need not reach a waiter if another waiter of the same consumer group learned of it.
import { presets } from '../../src/index.ts'
import { type Application, type WaitKey } from './application.ts'
import type { VirtualNetwork } from './virtual-network.ts'

const { lan } = presets
/**
 * In heartbeat intervals: until the next heartbeat. Members that join or leave may delay it by one interval.
 */
const heartbeatsAfter = 2.2
/** Allows for the delay of datagrams and for the interval between two checks. */
const extraMs = 300

interface Untold {
  readonly sender: Application
  readonly key: WaitKey
  readonly isOneFirst: boolean
  readonly pushedAt: number
  dueAt: number
}

export class NoticeWatch {
  readonly #network: VirtualNetwork
  readonly #untold = new Map<Application, Set<Untold>>()
  /** Since when every datagram arrives soon; Infinity while some do not. */
  #calmSince = 0

  constructor(network: VirtualNetwork) {
    this.#network = network
  }

  /** Records a push. Each of these nodes has to learn of it if it waits for the key. */
  pushed(
    sender: Application,
    key: WaitKey,
    spread: 'one' | 'all',
    running: readonly Application[],
  ): void {
    const { now } = this.#network
    for (const app of running) {
      const wait = app.waits.get(key)
      if (app === sender || wait === undefined || wait.version > app.echoed) continue
      // A node that does not know the sender yet learns of the push when the sender joins.
      if (!app.knows(sender)) continue
      const untold = this.#untold.get(app) ?? new Set()
      this.#untold.set(app, untold)
      const dueAt = now + this.#boundMs(sender)
      untold.add({ sender, key, isOneFirst: spread === 'one', pushedAt: now, dueAt })
    }
  }

  /**
   * Records that a node got a hint about a scope or, without a scope, an event that makes it check everything.
   */
  told(app: Application, fromNodeId: string, scope?: string): void {
    for (const [other, untold] of this.#untold) {
      for (const one of untold) {
        const isMeant = scope === undefined || one.key.startsWith(`${scope} `)
        if (!isMeant || one.sender.node.nodeId !== fromNodeId) continue
        if (other === app || (one.isOneFirst && app.waits.has(one.key))) untold.delete(one)
      }
    }
  }

  /** Records that a node reported lost hints of another. Returns a violation if none can have been lost. */
  alarmed(app: Application, sender: Application | undefined): string[] {
    if (sender === undefined) return []
    const { now } = this.#network
    const knownSince = Math.max(app.knownSince(sender), sender.knownSince(app))
    const since = Math.max(this.#calmSince, knownSince)
    if (!(now - since > this.#boundMs(sender))) return []
    return [`${app.node.nodeId} reported lost hints of ${sender.node.nodeId}, but none were lost`]
  }

  /** Records that the network changed: datagrams in flight may be lost or overtaken. */
  disturbed(): void {
    this.#calmSince = Number.POSITIVE_INFINITY
  }

  /** Call this often, and whenever the network changed. Returns the pushes that waiters did not learn of. */
  check(): string[] {
    const { now } = this.#network
    if (!this.#network.isCalm) this.#calmSince = Number.POSITIVE_INFINITY
    else if (this.#calmSince === Number.POSITIVE_INFINITY) this.#calmSince = now
    const broken: string[] = []
    for (const [app, untold] of this.#untold) {
      for (const one of untold) {
        if (isMoot(app, one)) untold.delete(one)
        else if (!this.#isWellBetween(app, one.sender)) one.dueAt = now + this.#boundMs(one.sender)
        else if (now >= one.dueAt) {
          untold.delete(one)
          const { key, pushedAt, sender } = one
          const names = `${app.node.nodeId} did not learn of ${key} from ${sender.node.nodeId}`
          broken.push(`${names}, pushed at ${pushedAt}`)
        }
      }
      if (untold.size === 0) this.#untold.delete(app)
    }
    return broken
  }

  #isWellBetween(app: Application, sender: Application): boolean {
    const { now } = this.#network
    return (
      this.#network.connects(sender.node, app.node) &&
      this.#network.connects(app.node, sender.node) &&
      Math.max(app.node.stalledUntil, sender.node.stalledUntil) <= now &&
      app.knows(sender) &&
      sender.knows(app)
    )
  }

  #boundMs(sender: Application): number {
    const intervalMs = Math.max(lan.heartbeatMs, lan.heartbeatPerNodeMs * (sender.peers.size + 1))
    return heartbeatsAfter * intervalMs + extraMs
  }
}

function isMoot(app: Application, { sender, key, pushedAt }: Untold): boolean {
  const since = app.waits.get(key)?.since ?? Number.POSITIVE_INFINITY
  return !app.node.isRunning || !sender.node.isRunning || since > pushedAt
}
