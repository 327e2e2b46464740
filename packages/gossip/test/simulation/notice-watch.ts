// Whether waiters learn what they should. A hint may be lost. But once all is well between the node that pushed
// and the one that waits, heartbeats tell the latter within about T that it missed something, unless it was told
// meanwhile that the other came or went. And where nothing was lost, nobody is told that it was.
import { presets } from '../../src/index.ts'
import type { Application } from './application.ts'
import type { VirtualNetwork } from './virtual-network.ts'

const { lan } = presets
/** In T: until the next heartbeat; members that come and go in between may put it off by a turn. */
const heartbeatsAfter = 2.2
/** Datagrams on their way, and the time between two looks. */
const extraMs = 300

interface Untold {
  readonly sender: Application
  readonly key: string
  readonly pushedAt: number
  dueAt: number
}

export class NoticeWatch {
  readonly #network: VirtualNetwork
  readonly #untold = new Map<Application, Set<Untold>>()
  /** Since when every datagram comes soon; Infinity while that is not so. */
  #calmSince = 0

  constructor(network: VirtualNetwork) {
    this.#network = network
  }

  /** A push of which every one of these who waits for the key has to learn. */
  pushed(sender: Application, key: string, running: readonly Application[]): void {
    const { now } = this.#network
    for (const app of running) {
      const wait = app.waits.get(key)
      if (app === sender || wait === undefined || wait.version > app.echoed) continue
      // Whoever does not know the sender is told when it does.
      if (!app.knows(sender)) continue
      const untold = this.#untold.get(app) ?? new Set()
      this.#untold.set(app, untold)
      untold.add({ sender, key, pushedAt: now, dueAt: now + this.#boundMs(sender) })
    }
  }

  /** A hint about a key; or, without one, news that make a node look at everything. */
  told(app: Application, fromNodeId: string, key?: string): void {
    const untold = this.#untold.get(app)
    for (const one of untold ?? []) {
      const isMeant = key === undefined || one.key === key
      if (isMeant && one.sender.node.nodeId === fromNodeId) untold?.delete(one)
    }
  }

  /** A node was told that hints of another were lost: whether that cannot be. */
  alarmed(app: Application, sender: Application | undefined): string[] {
    if (sender === undefined) return []
    const { now } = this.#network
    const knownSince = Math.max(app.knownSince(sender), sender.knownSince(app))
    const since = Math.max(this.#calmSince, knownSince)
    if (!(now - since > this.#boundMs(sender))) return []
    return [`${app.node.nodeId} missed hints of ${sender.node.nodeId}, and none were lost`]
  }

  /** The network is another: what is under way may be lost or overtaken. */
  disturbed(): void {
    this.#calmSince = Number.POSITIVE_INFINITY
  }

  /** To be called often, and whenever the network changed. Answers what nobody was told of. */
  look(): string[] {
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
          const names = `${app.node.nodeId} was not told of ${key} by ${sender.node.nodeId}`
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
