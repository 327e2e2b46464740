// Nodes with the production core, a virtual clock, and a network that loses, delays, duplicates and reorders
// datagrams, determined by a seed. Loss, delay, duplication and reordering have separate random streams, so
// that an additional draw from one does not change the others.
import { type Random, seededRandom } from '@rouse/testkit'
import {
  type Address,
  GossipCore,
  type GossipCoreOptions,
  type GossipPorts,
  type GossipPreset,
  type Hint,
  KeyRing,
  presets,
} from '../../src/index.ts'
import { EventQueue } from './event-queue.ts'
import { lifeOf, raise, type VirtualNode } from './virtual-node.ts'

export interface LinkQuality {
  loss: number
  duplication: number
  reordering: number
  delayMs: number
  jitterMs: number
  reorderedByMs: number
}

export const perfect: LinkQuality = {
  loss: 0,
  duplication: 0,
  reordering: 0,
  delayMs: 0.2,
  jitterMs: 0.3,
  reorderedByMs: 100,
}

export interface NetworkOptions {
  readonly seed: number
  readonly preset?: GossipPreset
  readonly secrets?: readonly string[]
  /** Replaces real signatures, which take more time than everything else. */
  readonly signer?: GossipCoreOptions['signer']
  readonly recordsHeard?: boolean
}

export interface NodeName {
  readonly nodeId: string
  readonly address: Address
  readonly incarnation: number
  readonly advertise?: Address | undefined
  readonly signer?: GossipCoreOptions['signer'] | undefined
}

export interface NodePorts extends Omit<GossipPorts, 'send' | 'onHint'> {
  onHint(hint: Hint, fromNodeId: string, settle?: () => void): void
}

const ipAndUdpBytes = 28
/** The shortest delay of a timer: a timer never fires at once, and virtual time must advance. */
const leastMs = 0.001

interface Sending {
  readonly from: VirtualNode
  readonly bytes: Uint8Array
  readonly to: Address
  readonly sentAt: number
  readonly heardTo: number | undefined
}

export class VirtualNetwork {
  readonly quality: LinkQuality = { ...perfect }
  readonly nodes = new Map<Address, VirtualNode>()
  /** All incarnations that ever started. */
  readonly lives = new Map<string, VirtualNode>()
  readonly #options: NetworkOptions
  readonly #events = new EventQueue<() => void>()
  /** Directions in which no datagram passes. */
  readonly #cuts = new Map<Address, Set<Address>>()
  readonly #random: Record<'loss' | 'delay' | 'duplicate' | 'reorder' | 'core', Random>
  now = 0
  datagrams = 0
  /** Called for every datagram that is sent. */
  onSend: ((bytes: Uint8Array, from: Address, to: Address) => void) | undefined

  constructor(options: NetworkOptions) {
    this.#options = options
    const stream = (concern: number) => seededRandom(options.seed * 31 + concern)
    this.#random = {
      loss: stream(1),
      delay: stream(2),
      duplicate: stream(3),
      reorder: stream(4),
      core: stream(5),
    }
  }

  /** Starts a node, or its next incarnation. */
  start({ signer, advertise, ...name }: NodeName, ports: NodePorts): VirtualNode {
    const { preset = presets.lan, secrets = [] } = this.#options
    const seed = this.#random.core.below(2 ** 32)
    const random = seededRandom(seed)
    const core = new GossipCore(
      {
        ...name,
        clusterId: 'simulated',
        advertise: () => advertise ?? name.address,
        signer: signer ?? this.#options.signer ?? new KeyRing('simulated', secrets),
        preset,
        random: () => random.next(),
      },
      {
        ...ports,
        send: (bytes, to) => this.#send(node, bytes, to),
        onHint: (hint, from, settle) => {
          const report = settle && (() => this.act(node, (_, nowMs) => settle(nowMs)))
          ports.onHint(hint, from, report)
        },
      },
      this.now,
    )
    const node: VirtualNode = {
      ...name,
      core,
      isRunning: true,
      stoppedAt: Number.POSITIVE_INFINITY,
      stalledUntil: 0,
      clockOffsetMs: 0,
      skippedMs: 0,
      armedFor: Number.POSITIVE_INFINITY,
      bytesSent: 0,
      bytesReceived: 0,
      stalls: [],
      heardFrom: new Map(),
      answeredBy: new Map(),
      aliases: [],
    }
    this.nodes.set(name.address, node)
    this.lives.set(lifeOf(node), node)
    return node
  }

  /** Calls the core of a node with the time of the node's clock. */
  act<Result>(node: VirtualNode, action: (core: GossipCore, nowMs: number) => Result): Result {
    const result = action(node.core, this.now + node.clockOffsetMs)
    this.#arm(node)
    return result
  }

  crash(node: VirtualNode): void {
    node.isRunning = false
    node.stoppedAt = Math.min(node.stoppedAt, this.now)
    for (const address of [node.address, ...node.aliases]) {
      if (this.nodes.get(address) === node) this.nodes.delete(address)
    }
  }

  addAlias(node: VirtualNode, address: Address): void {
    node.aliases.push(address)
    this.nodes.set(address, node)
  }

  /** Moves a node to another address; its datagrams then come from there. */
  rebind(node: VirtualNode, address: Address): void {
    if (this.nodes.get(node.address) === node) this.nodes.delete(node.address)
    node.address = address
    this.nodes.set(address, node)
  }

  stall(node: VirtualNode, forMs: number): void {
    const until = Math.max(node.stalledUntil, this.now + forMs)
    node.stalls.push({ from: Math.max(node.stalledUntil, this.now), until })
    node.stalledUntil = until
  }

  stepClock(node: VirtualNode, byMs: number): void {
    node.clockOffsetMs += byMs
    node.skippedMs += Math.max(0, byMs)
    node.armedFor = Number.POSITIVE_INFINITY
    this.#arm(node)
  }

  /** Drops all datagrams in this direction. */
  cut(from: Address, to: Address): void {
    const cut = this.#cuts.get(from) ?? new Set()
    this.#cuts.set(from, cut.add(to))
  }

  mend(from: Address, to: Address): void {
    this.#cuts.get(from)?.delete(to)
  }

  mendAll(): void {
    this.#cuts.clear()
  }

  /** Whether a datagram that is sent now arrives, even if late. */
  connects(from: VirtualNode, to: VirtualNode): boolean {
    return this.quality.loss === 0 && this.#cuts.get(from.address)?.has(to.address) !== true
  }

  /** Whether every datagram that is sent now arrives soon. */
  get isCalm(): boolean {
    const { loss, reordering } = this.quality
    if (loss > 0 || reordering > 0) return false
    for (const { size } of this.#cuts.values()) if (size > 0) return false
    for (const { stalledUntil } of this.nodes.values()) if (stalledUntil > this.now) return false
    return true
  }

  at(time: number, event: () => void): void {
    this.#events.push(time, event)
  }

  runUntil(time: number): void {
    while (this.#events.nextAt <= time) {
      this.now = Math.max(this.now, this.#events.nextAt)
      this.#events.pop()?.()
    }
    this.now = time
  }

  runFor(ms: number): void {
    this.runUntil(this.now + ms)
  }

  #send(from: VirtualNode, bytes: Uint8Array, to: Address): void {
    this.datagrams += 1
    this.onSend?.(bytes, from.address, to)
    from.bytesSent += bytes.length + ipAndUdpBytes
    const { loss, duplication } = this.quality
    const isLost = this.#random.loss.next() < loss
    if (isLost || this.#cuts.get(from.address)?.has(to)) return
    this.#deliverLater(from, bytes, to)
    if (this.#random.duplicate.next() < duplication) this.#deliverLater(from, bytes, to)
  }

  #deliverLater(from: VirtualNode, bytes: Uint8Array, to: Address): void {
    const { delayMs, jitterMs, reordering, reorderedByMs } = this.quality
    let afterMs = delayMs + jitterMs * this.#random.delay.next()
    if (this.#random.reorder.next() < reordering) {
      afterMs += reorderedByMs * this.#random.reorder.next()
    }
    const sending = { from, bytes, to, sentAt: this.now, heardTo: this.#heardTo(from, to) }
    this.#events.push(this.now + afterMs, () => this.#deliver(sending))
  }

  /** When the receiver sent the last datagram that the sender has received. */
  #heardTo(from: VirtualNode, to: Address): number | undefined {
    const receiver = this.nodes.get(to)
    return receiver && from.heardFrom.get(receiver)
  }

  #deliver(sending: Sending): void {
    const { from, bytes, to, sentAt, heardTo } = sending
    const node = this.nodes.get(to)
    if (node === undefined) return
    // Deliver after the timers: after a stall, Node.js runs timers before it reads the socket.
    if (this.now < node.stalledUntil) {
      const resumedAt = node.stalledUntil + 0.002
      this.#events.push(resumedAt, () => this.#deliver(sending))
      return
    }
    node.bytesReceived += bytes.length + ipAndUdpBytes
    if (this.#options.recordsHeard !== false) {
      raise(node.heardFrom, from, sentAt)
      if (heardTo !== undefined) raise(node.answeredBy, from, heardTo)
    }
    // No copy: the core does not change the bytes.
    const received = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length)
    this.act(node, (core, nowMs) => core.receive(received, from.address, nowMs))
  }

  #arm(node: VirtualNode): void {
    const dueAt = Math.max(this.now + leastMs, node.core.nextTickAt() - node.clockOffsetMs)
    if (!node.isRunning || dueAt >= node.armedFor) return
    node.armedFor = dueAt
    if (dueAt < Number.POSITIVE_INFINITY) this.#events.push(dueAt, () => this.#tick(node, dueAt))
  }

  #tick(node: VirtualNode, dueAt: number): void {
    if (!node.isRunning || node.armedFor !== dueAt) return
    if (this.now < node.stalledUntil) {
      const resumedAt = node.stalledUntil
      node.armedFor = resumedAt
      this.#events.push(resumedAt, () => this.#tick(node, resumedAt))
      return
    }
    node.armedFor = Number.POSITIVE_INFINITY
    this.act(node, (core, nowMs) => core.tick(nowMs))
  }
}
