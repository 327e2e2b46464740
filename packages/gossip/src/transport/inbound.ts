// Handles a received datagram. The cheap checks come first: header, signature, whether the sender's
// incarnation has ended, replay. Only then is the body decoded.

import type { GossipParts } from '../gossip-parts.ts'
import { isAmong } from '../hints/recipients.ts'
import type { InterestSync } from '../interest/interest-sync.ts'
import type { Handshake, Proof } from '../membership/handshake.ts'
import type { Heartbeats } from '../membership/heartbeats.ts'
import type { Member } from '../membership/member.ts'
import type { MemberWatch } from '../membership/member-watch.ts'
import { NodeIdConflict } from '../membership/node-id-conflict.ts'
import type { Roster } from '../membership/roster.ts'
import type { GossipPorts, Settle } from '../ports.ts'
import { type DropReason, type Drops, noDrops } from '../wire/drops.ts'
import { type Frame, openFrame, type Signer } from '../wire/frame.ts'
import { readMessages } from '../wire/message-reader.ts'
import type { Heartbeat, Hello, Hints, Message, Settled } from '../wire/messages.ts'
import type { Address } from './address.ts'

const peersOnArrival = 20

interface InboundOptions {
  readonly parts: GossipParts
  readonly ports: GossipPorts
  readonly signer: Signer
  readonly handshake: Handshake
  readonly heartbeats: Heartbeats
  readonly silence: MemberWatch
  readonly interest: InterestSync
  readonly roster: Roster
  /** The waiters of this node have taken the messages of a hint. */
  readonly onSettled: (
    member: Member,
    batchNumber: number,
    askNumber: number,
    nowMs: number,
  ) => void
}

export class Inbound {
  readonly #options: InboundOptions
  readonly #parts: GossipParts
  readonly drops: Drops = noDrops()
  datagrams = 0
  /** True while the node stops. The node then accepts no new members. */
  isLeaving = false
  readonly #conflict: NodeIdConflict
  #hasContact = false

  constructor(options: InboundOptions) {
    this.#options = options
    this.#parts = options.parts
    this.#conflict = new NodeIdConflict(options.parts, options.ports)
  }

  receive(bytes: Buffer, from: Address, now: number): void {
    this.datagrams += 1
    const frame = openFrame(bytes, this.#parts.wire.origin.cluster, this.#options.signer)
    const dropped = typeof frame === 'string' ? frame : this.#take(frame, from, now)
    if (dropped !== undefined) this.drops[dropped] += 1
  }

  #take(frame: Frame, from: Address, now: number): DropReason | undefined {
    const { members, wire } = this.#parts
    const { sender, incarnation, sequence } = frame
    if (!Number.isSafeInteger(incarnation) || !Number.isSafeInteger(sequence)) return 'shape'
    if (sender === wire.sender) return this.#takeOwn(frame, from, now)
    if (members.hasLeft(sender, incarnation, now)) return 'stale'
    const latest = members.get(sender)
    if (latest !== undefined && incarnation < latest.incarnation) {
      this.#conflict.answer(frame, latest.incarnation, from, now)
      return 'stale'
    }
    const member = latest?.incarnation === incarnation ? latest : undefined
    if (member !== undefined && !member.window.accept(sequence)) {
      member.replays += 1
      return 'replay'
    }
    const messages = readMessages(frame.body)
    if (typeof messages === 'string') return messages
    if (member !== undefined) return this.#takeFromMember(member, messages, from, now)
    return this.isLeaving ? 'unknown' : this.#takeFromStranger(frame, messages, from, now)
  }

  /** A datagram with our id. This node may have sent it to itself, because DNS and the database also list
   * this node. If the incarnation differs, another process uses our id. */
  #takeOwn(frame: Frame, from: Address, now: number): DropReason {
    if (frame.incarnation === this.#parts.wire.origin.incarnation) {
      this.#parts.candidates.slowDown(from)
      return 'self'
    }
    this.#conflict.heardDuplicate(frame, from, now)
    return 'stale'
  }

  #takeFromStranger(
    frame: Frame,
    messages: readonly Message[],
    from: Address,
    now: number,
  ): DropReason | undefined {
    const { handshake, roster, heartbeats } = this.#options
    const arrival = handshake.receive(frame, messages, from, now)
    if (arrival === 'answered') {
      this.#contact()
      return undefined
    }
    if (typeof arrival === 'string') {
      this.#conflict.noteAll(messages, now)
      return arrival
    }
    if (this.#parts.members.isFull) return 'full'
    this.#contact()
    const member = roster.admit(arrival, now)
    heartbeats.begin(now)
    this.#handle(member, messages, now)
    const hello = messages.find((message) => message.type === 'hello')
    if (hello !== undefined) {
      const knowsAll = hello.known > this.#parts.members.size
      const peers = knowsAll ? [] : heartbeats.somePeers(member, peersOnArrival)
      handshake.welcome(member, hello, peers, now)
    }
    this.#options.interest.sendIfBehind(member, now)
    return undefined
  }

  /** Another node made contact: our answer to its hello, or our welcome, reports which hints we have sent. */
  #contact(): void {
    if (this.#hasContact) return
    this.#hasContact = true
    this.#options.ports.onContact?.()
  }

  #takeFromMember(
    member: Member,
    messages: readonly Message[],
    from: Address,
    now: number,
  ): DropReason | undefined {
    member.datagramsReceived += 1
    const { handshake, heartbeats } = this.#options
    let hello: Hello | undefined
    let heartbeat: Heartbeat | undefined
    for (const message of messages) {
      if (message.type === 'hello') hello = message
      else if (message.type === 'heartbeat') heartbeat = message
      else if (isAddressed(message) && !this.#isForUs(message)) return 'misdirected'
    }
    // Only a heartbeat for us proves that a member is alive: a datagram with the same content for many peers
    // may have been recorded elsewhere and replayed here.
    if (heartbeat !== undefined) {
      if (!heartbeats.isForUs(member, heartbeat)) return 'misdirected'
      member.heardAt = now
    }
    if (hello !== undefined) {
      const proof = handshake.provenBy(messages, now)
      if (proof !== undefined) this.#answeredAt(member, proof, from, now)
      if (!this.isLeaving) handshake.receiveFromMember(hello, { member, proof, from, now })
    } else if (from !== member.address && heartbeat !== undefined) {
      this.#parts.candidates.overhear(from, now)
    }
    this.#handle(member, messages, now)
    return undefined
  }

  /** A member moves only to an address to which we sent a hello and from which its answer came. */
  #answeredAt(member: Member, { to, at }: Proof, from: Address, now: number): void {
    const { roster, silence } = this.#options
    this.#parts.candidates.answered(to, member.sender)
    if (to === from && member.state !== 'alive') roster.move(member, to, now)
    if (to !== member.address || at <= member.echoedAt) return
    member.echoedAt = at
    silence.provenAlive(member, now)
  }

  #handle(member: Member, messages: readonly Message[], now: number): void {
    const { silence, heartbeats, roster, ports } = this.#options
    for (const message of messages) {
      switch (message.type) {
        case 'heartbeat':
          this.#heartbeat(member, message, now)
          break
        case 'interest':
          if (!member.interest.receive(message)) break
          heartbeats.answer(member, now)
          ports.onPeerInterest?.()
          break
        case 'hints':
          this.#hints(member, message)
          break
        case 'settled':
          this.#settled(member, message)
          break
        case 'peers':
          for (const address of message.addresses) this.#parts.candidates.learn(address, now)
          break
        case 'leave':
          roster.remove(member, 'left', now)
          return
        case 'vouch request':
          silence.vouch(message, member, now)
          break
        case 'vouch':
          silence.vouchedFor(message, now)
          break
        case 'stale':
          this.#conflict.note(message, now)
          break
        case 'hello':
          break
      }
    }
  }

  #heartbeat(member: Member, heartbeat: Heartbeat, now: number): void {
    const { heartbeats, silence, interest, ports } = this.#options
    const { interestHeld, echoedAt } = member
    const { isEmpty } = member.interest
    const lost = heartbeats.receive(member, heartbeat, now)
    if (member.interest.isEmpty !== isEmpty) ports.onPeerInterest?.()
    if (member.echoedAt > echoedAt) silence.provenAlive(member, now)
    if (member.interestHeld !== interestHeld) interest.membersChanged(now)
    interest.sendIfBehind(member, now)
    if (lost > 0) ports.onHintsLost?.(member.nodeId, lost)
  }

  #isForUs({ to }: Hints | Settled): boolean {
    return to === undefined || isAmong(this.#parts.wire.sender, to)
  }

  #hints(member: Member, { batches }: Hints): void {
    const { ports } = this.#options
    for (const { number, hints } of batches) {
      if (!member.inbox.accept(number)) continue
      member.hintsReceived += hints.length
      for (const { ask, ...hint } of hints) {
        const settle = ask === undefined ? undefined : this.#settle(member, number, ask)
        if (settle === undefined) ports.onHint(hint, member.nodeId)
        else ports.onHint(hint, member.nodeId, settle)
      }
    }
  }

  /** Undefined if the member may hold an interest from which an entry was removed since: it may count on this
   * node for a consumer group that has no waiters here any more. */
  #settle(member: Member, batch: number, ask: number): Settle<[nowMs: number]> | undefined {
    if (member.interestHeld < this.#parts.interest.removedVersion) return undefined
    let isSettled = false
    return (nowMs) => {
      if (isSettled) return
      isSettled = true
      this.#options.onSettled(member, batch, ask, nowMs)
    }
  }

  #settled(member: Member, { settled }: Settled): void {
    for (let index = 0; index < settled.length; index += 2) {
      const [batch = 0, ask = 0] = settled.slice(index, index + 2)
      if (this.#parts.outbox.settled(member, batch, ask)) this.#options.heartbeats.calm(member)
    }
  }
}

function isAddressed(message: Message): message is Hints | Settled {
  return message.type === 'hints' || message.type === 'settled'
}
