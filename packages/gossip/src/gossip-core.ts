// One node's gossip, without a socket, a timer or a clock. Bytes and times come in as calls; datagrams and
// events go out through ports. Production and the simulation run the same code.
//
//   receive(bytes, from)      checks the signature, drops replays, then handles each message
//   tick()                    sends due heartbeats, hellos, hints and interest; judges silent members
//   nextTickAt()              when tick has work next; read it again after every call
//   hint(), setInterest(), discovered(), leave(), fallSilent()   called by the owner of the core
//
// The parts: handshake.ts (joining), heartbeats.ts and member-watch.ts (failure detection), hint-outbox.ts
// and hint-inbox.ts (hints), own-interest.ts and peer-interest.ts (which peer gets which hints).

import type { GossipParts } from './gossip-parts.ts'
import type { OutgoingHint } from './hints/hint.ts'
import { HintOutbox, type Parcel } from './hints/hint-outbox.ts'
import { batchBytesMax } from './hints/pending-hints.ts'
import { inGroups, writeRecipients } from './hints/recipients.ts'
import { Reports } from './hints/reports.ts'
import { routeOf } from './hints/route.ts'
import { InterestSync } from './interest/interest-sync.ts'
import { type Interest, OwnInterest } from './interest/own-interest.ts'
import { Candidates } from './membership/candidates.ts'
import { Handshake } from './membership/handshake.ts'
import { Heartbeats } from './membership/heartbeats.ts'
import type { Member } from './membership/member.ts'
import { MemberWatch } from './membership/member-watch.ts'
import { Members } from './membership/members.ts'
import type { PeerView } from './membership/peer-view.ts'
import { Roster } from './membership/roster.ts'
import type { GossipCoreOptions, GossipPorts } from './ports.ts'
import type { Address } from './transport/address.ts'
import { Inbound } from './transport/inbound.ts'
import { SteadyTime } from './transport/steady-time.ts'
import type { Drops } from './wire/drops.ts'
import type { Message } from './wire/messages.ts'
import { TokenClock } from './wire/token-clock.ts'
import { Wire } from './wire/wire.ts'

export interface GossipStats {
  readonly datagramsSent: number
  /** Those of them that carry hints, or only reports about hints. */
  readonly hintDatagramsSent: number
  readonly bytesSent: number
  readonly datagramsReceived: number
  readonly drops: Drops
  /** How often the event loop, or the machine, stalled. */
  readonly stalls: number
  readonly candidates: number
}

export class GossipCore {
  readonly #time = new SteadyTime()
  readonly #parts: GossipParts
  readonly #heartbeats: Heartbeats
  readonly #handshake: Handshake
  readonly #silence: MemberWatch
  readonly #interest: InterestSync
  readonly #roster: Roster
  readonly #inbound: Inbound
  #stalls = 0
  #dueAt = Number.POSITIVE_INFINITY
  /** When to send leave messages; undefined until `leave` is called. */
  #leaveAt: number[] | undefined
  #isFallingSilent = false

  readonly #ports: GossipPorts
  /** The last batch that was sent for the first time. */
  #sentBatch = 0

  constructor(options: GossipCoreOptions, ports: GossipPorts, nowMs: number) {
    this.#ports = ports
    const parts = makeParts(options, ports, this.#time.read(nowMs))
    this.#parts = parts
    this.#heartbeats = new Heartbeats(parts)
    this.#handshake = new Handshake(parts, this.#heartbeats, options)
    this.#interest = new InterestSync(parts, (version) => ports.onInterestEchoed?.(version))
    this.#roster = new Roster(parts, this.#interest, ports)
    this.#silence = new MemberWatch(parts, (member, verdict, now) =>
      this.#roster.judged(member, verdict, now),
    )
    this.#inbound = new Inbound({
      parts,
      ports,
      signer: options.signer,
      handshake: this.#handshake,
      heartbeats: this.#heartbeats,
      silence: this.#silence,
      interest: this.#interest,
      roster: this.#roster,
      onSettled: (...settled) => this.#settled(...settled),
    })
  }

  /** Addresses to try. They replace those that the same source reported before. */
  discovered(addresses: Iterable<Address>, nowMs: number, source = 'database'): void {
    this.#parts.candidates.replace(source, addresses, this.#time.read(nowMs))
    this.#plan()
  }

  /** What this node waits for. Each version must be greater than the one before. */
  setInterest(interest: Interest, nowMs: number): void {
    this.#interest.set(interest, this.#time.read(nowMs))
    this.#plan()
  }

  /** The consumer groups that peers may expect here for these scopes. A withdrawn one is included for as long
   * as peers may still count on it. */
  advertisedGroups(scopes: readonly string[]): Set<string> {
    return this.#parts.interest.groupsFor(scopes)
  }

  /** Queues a hint for the peers. The next tick sends it; that tick is due at once unless hints are
   * frequent. */
  hint(hint: OutgoingHint, nowMs: number): void {
    const now = this.#time.read(nowMs)
    if (this.#leaveAt !== undefined) return
    this.#parts.outbox.add(hint, this.#parts.members.all(), now)
    this.#plan()
  }

  /** Sends leave messages, now and in the next ticks. After the last one `nextTickAt` is Infinity. */
  leave(nowMs: number): void {
    const now = this.#time.read(nowMs)
    this.#leaveAt ??= this.#parts.preset.leaveAtMs.map((afterMs) => now + afterMs)
    this.#inbound.isLeaving = true
    this.tick(nowMs)
  }

  /** Stops without a leave message, so peers only notice the silence. After the last hints `nextTickAt` is
   * Infinity. */
  fallSilent(nowMs: number): void {
    this.#isFallingSilent = true
    this.#inbound.isLeaving = true
    this.tick(nowMs)
  }

  receive(bytes: Buffer, from: Address, nowMs: number): void {
    this.#inbound.receive(bytes, from, this.#time.read(nowMs))
    this.#plan()
  }

  tick(nowMs: number): void {
    const now = this.#time.read(nowMs)
    if (this.#leaveAt !== undefined) this.#sendLeave(this.#leaveAt, now)
    else if (this.#isFallingSilent) this.#sendHints(now)
    else this.#tick(now)
    this.#plan()
  }

  /** Infinity if nothing is planned. */
  nextTickAt(): number {
    return this.#time.outside(this.#dueAt)
  }

  /** Whether any peer waits for something, as far as this node knows. */
  peersWait(): boolean {
    return this.#parts.members.all().some(({ interest }) => !interest.isEmpty)
  }

  get memberCount(): number {
    return this.#parts.members.size
  }

  /** Whether a hint with these keys, for this or any consumer group, goes to this peer. */
  tells(nodeId: string, keys: readonly string[], group?: string): boolean {
    const member = this.#parts.members.all().find((one) => one.nodeId === nodeId)
    const route = routeOf({ kind: 'MESSAGE_AVAILABLE', scope: '', count: 1, keys, group })
    return member?.interest.wants(route) ?? false
  }

  /** Current members, and those that left or died recently. */
  peers(nowMs: number): PeerView[] {
    return this.#roster.views(this.#time.read(nowMs))
  }

  stats(): GossipStats {
    const { wire, candidates } = this.#parts
    return {
      datagramsSent: wire.datagramsSent,
      hintDatagramsSent: wire.hintDatagramsSent,
      bytesSent: wire.bytesSent,
      datagramsReceived: this.#inbound.datagrams,
      drops: { ...this.#inbound.drops },
      stalls: this.#stalls,
      candidates: candidates.size,
    }
  }

  #tick(now: number): void {
    this.#forgiveStall(now)
    this.#sendHints(now)
    this.#sendReports(now)
    if (this.#parts.candidates.nextAt <= now) this.#handshake.greet(now)
    this.#silence.judge(this.#heartbeats.beat(now), now)
    this.#interest.tick(now)
  }

  /**
   * During a stall this node receives nothing, so the time of the stall does not count as silence of peers.
   */
  #forgiveStall(now: number): void {
    const lateMs = now - this.#dueAt
    if (lateMs < this.#parts.intervalMs() / 2) return
    this.#stalls += 1
    for (const member of this.#parts.members.all()) {
      member.heardAt = Math.min(now, member.heardAt + lateMs)
      member.echoedAt = Math.min(now, member.echoedAt + lateMs)
      member.vouchedAt = Math.min(now, member.vouchedAt + lateMs)
    }
  }

  #sendHints(now: number): void {
    const { outbox, members, wire } = this.#parts
    if (outbox.nextAt > now) return
    for (const parcel of outbox.take(now, members.all())) {
      const { to, batches, isForAll } = parcel
      const present = to.filter((member) => members.get(member.sender) === member)
      if (isForAll && present.length > 1) wire.sendTo(present, [{ type: 'hints', batches }])
      else this.#sendHintsToSome(present, parcel)
      this.#heartbeats.hurry(present, now)
      this.#reportSent(present, batches)
    }
  }

  #reportSent(to: readonly Member[], batches: Parcel<Member>['batches']): void {
    const before = this.#sentBatch
    const { onHintsSent } = this.#ports
    for (const { number, hints } of batches) {
      this.#sentBatch = Math.max(this.#sentBatch, number)
      onHintsSent?.(
        to.map(({ nodeId }) => nodeId),
        hints,
        number <= before,
      )
    }
  }

  /** A datagram to one member also takes the reports that wait for it. */
  #sendHintsToSome(
    recipients: readonly Member[],
    { batches, bytes, isForAll }: Parcel<Member>,
  ): void {
    const { reports, wire } = this.#parts
    for (const group of inGroups(recipients)) {
      const to = isForAll ? undefined : writeRecipients(group.map(({ sender }) => sender))
      const messages: Message[] = [{ type: 'hints', batches, to }]
      const [only, ...others] = group
      if (only !== undefined && others.length === 0) {
        messages.push(...reports.takeFor(only, batchBytesMax - bytes))
      }
      wire.sendTo(group, messages)
    }
  }

  #sendReports(now: number): void {
    const { reports, members, wire } = this.#parts
    for (const [member, messages] of reports.takeDue(now)) {
      if (members.get(member.sender) === member) wire.sendTo([member], messages)
    }
  }

  #settled(member: Member, batchNumber: number, askNumber: number, nowMs: number): void {
    this.#parts.reports.add(member, batchNumber, askNumber, this.#time.read(nowMs))
    this.#plan()
  }

  #sendLeave(leaveAt: number[], now: number): void {
    if ((leaveAt[0] ?? Number.POSITIVE_INFINITY) > now) return
    leaveAt.shift()
    this.#parts.wire.sendTo(this.#parts.members.all(), [{ type: 'leave' }])
  }

  #plan(): void {
    const { outbox, reports, candidates } = this.#parts
    if (this.#leaveAt !== undefined) this.#dueAt = this.#leaveAt[0] ?? Number.POSITIVE_INFINITY
    else if (this.#isFallingSilent) this.#dueAt = outbox.nextAt
    else {
      this.#dueAt = Math.min(
        outbox.nextAt,
        reports.nextAt,
        candidates.nextAt,
        this.#heartbeats.nextAt,
        this.#silence.nextAt,
        this.#interest.nextAt,
      )
    }
  }
}

function makeParts(options: GossipCoreOptions, ports: GossipPorts, now: number): GossipParts {
  const { preset, random } = options
  const wire = new Wire(options, ports)
  const members = new Members(wire.sender)
  return {
    preset,
    random,
    wire,
    members,
    tokens: new TokenClock(random, now),
    candidates: new Candidates(preset),
    interest: new OwnInterest(preset.interestLingerMs),
    outbox: new HintOutbox<Member>(preset),
    reports: new Reports(),
    intervalMs: () => Math.max(preset.heartbeatMs, preset.heartbeatPerNodeMs * (members.size + 1)),
  }
}
