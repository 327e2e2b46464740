// Each member gets a heartbeat per interval T. The heartbeat shows that we are alive, returns the member's
// token, and lets either side detect lost hints, outdated interest and unknown members. A member that was
// sent hints gets extra heartbeats soon after, so that it detects a lost hint early.
import type { GossipParts } from '../gossip-parts.ts'
import { durationMsMax, peersBytesMax, peersMax } from '../wire/message-reader.ts'
import type { Heartbeat, Hello, Message, Peers } from '../wire/messages.ts'
import type { Member } from './member.ts'

const rttWeight = 0.2
const jitter = 0.1
/** How many peers a heartbeat names to a member whose view differs from ours. */
const peersPerBeat = 3
const textOverheadBytes = 2
/** The room for reports in a heartbeat; the addresses of peers take the rest. */
const reportBytesMax = 400
/** The minimum time between two answers to one member. The next regular heartbeat replaces an omitted
 * answer. */
const answerGapMs = 100

/** How many extra heartbeats follow a hint, at seven times the usual rate. */
const eagerBeats = 8
const eagerPace = 0.14

export class Heartbeats {
  readonly #parts: GossipParts
  #nextAt = Number.POSITIVE_INFINITY
  /** Members that were sent hints, with the number of extra heartbeats left. */
  readonly #eager = new Map<Member, number>()
  #eagerAt = Number.POSITIVE_INFINITY

  constructor(parts: GossipParts) {
    this.#parts = parts
  }

  get nextAt(): number {
    return Math.min(this.#nextAt, this.#eagerAt)
  }

  /** Sends the due heartbeats. Returns the members that got a regular one. */
  beat(now: number): Member[] {
    if (this.#eagerAt <= now) this.#beatEagerly(now)
    return this.#nextAt <= now ? this.#beatSlice(now) : []
  }

  /** Schedules extra heartbeats for members that were sent hints. */
  hurry(members: readonly Member[], now: number): void {
    for (const member of members) this.#eager.set(member, eagerBeats)
    if (this.#eagerAt === Number.POSITIVE_INFINITY && members.length > 0) {
      this.#eagerAt = now + eagerPace * this.#parts.intervalMs()
    }
  }

  /** The member has all hints that were sent to it, so it need not detect a loss. */
  calm(member: Member): void {
    this.#eager.delete(member)
    if (this.#eager.size === 0) this.#eagerAt = Number.POSITIVE_INFINITY
  }

  #beatEagerly(now: number): void {
    for (const [member, left] of this.#eager) {
      if (left > 1) this.#eager.set(member, left - 1)
      else {
        this.#eager.delete(member)
        member.batchesUnconfirmed = 0
      }
      if (this.#parts.members.get(member.sender) === member) this.send(member, now)
    }
    const paceMs = eagerPace * this.#parts.intervalMs()
    this.#eagerAt = this.#eager.size === 0 ? Number.POSITIVE_INFINITY : now + paceMs
  }

  #beatSlice(now: number): Member[] {
    const { members, random } = this.#parts
    const slice = members.nextSlice()
    for (const member of slice) this.send(member, now)
    const betweenMs = this.#parts.intervalMs() / Math.max(1, members.sliceCount)
    const factor = 1 + jitter * (2 * random() - 1)
    this.#nextAt = members.size === 0 ? Number.POSITIVE_INFINITY : now + betweenMs * factor
    return slice
  }

  /** Starts the heartbeats when the first member joins. */
  begin(now: number): void {
    this.#nextAt = Math.min(this.#nextAt, now + this.#parts.intervalMs() * this.#parts.random())
  }

  send(member: Member, now: number): void {
    const messages: Message[] = [this.forMember(member, now)]
    if (member.view !== this.#parts.members.view) messages.push(...this.somePeers(member))
    messages.push(...this.#parts.reports.takeFor(member, reportBytesMax))
    this.#parts.wire.sendTo([member], messages)
  }

  /** Sends an extra heartbeat, so that the member soon learns that its own heartbeat arrived. */
  answer(member: Member, now: number): void {
    if (now - member.answeredAt < answerGapMs) return
    member.answeredAt = now
    this.send(member, now)
  }

  forMember(member: Member, now: number): Heartbeat {
    const token = this.#parts.tokens.issue(now)
    return this.#compose(member, token, member.token, tenths(now - member.tokenAt), now)
  }

  /** The heartbeat that accompanies our hello with this token. It returns the token of the peer's hello. The
   * peer need not be a member. */
  forHello(hello: Hello, member: Member | undefined, token: number, now: number): Heartbeat {
    return this.#compose(member, token, hello.token, 0, now)
  }

  #compose(
    member: Member | undefined,
    token: number,
    echo: number,
    heldTenthMs: number,
    now: number,
  ): Heartbeat {
    const { outbox, interest, members } = this.#parts
    const count = member === undefined ? outbox.countForNewcomer() : outbox.countFor(member)
    return {
      type: 'heartbeat',
      token,
      echo,
      heldTenthMs,
      sinceHeardMs: member === undefined ? 0 : wholeMs(now - member.heardAt),
      intervalMs: Math.ceil(this.#parts.intervalMs()),
      countedFrom: count.countedFrom,
      settledBatch: count.settledBatch,
      batchesSent: count.batchesSent,
      interestVersion: interest.message.version,
      interestHeld: member?.interest.version ?? 0,
      view: members.view,
    }
  }

  /** A member numbers its datagrams across all its peers, so a heartbeat for another peer that is replayed
   * here has a new number. But only a heartbeat for us returns a token of ours. */
  isForUs({ echo }: Member, heartbeat: Heartbeat): boolean {
    return this.#parts.tokens.isOwn(heartbeat.echo, echo)
  }

  /** Handles a member's heartbeat. Returns how many batches of hints were lost. */
  receive(member: Member, heartbeat: Heartbeat, now: number): number {
    member.echo = Math.max(member.echo, heartbeat.echo)
    this.#noteEcho(member, heartbeat, now)
    if (heartbeat.token <= member.token) return 0
    member.token = heartbeat.token
    member.tokenAt = now
    member.intervalMs = heartbeat.intervalMs
    member.sinceHeardMs = heartbeat.sinceHeardMs
    member.view = heartbeat.view
    member.interest.noteVersion(heartbeat.interestVersion)
    member.interestHeld = heartbeat.interestHeld
    return member.inbox.compare(heartbeat)
  }

  /** Ignores tokens of hellos: these were sent to an unproven address, which need not be the member's. */
  #noteEcho(member: Member, { echo, heldTenthMs }: Heartbeat, now: number): void {
    if (this.#parts.tokens.isForHello(echo)) return
    const issuedAt = this.#parts.tokens.issuedAt(echo, now)
    if (issuedAt === undefined || issuedAt <= member.echoedAt) return
    member.echoedAt = issuedAt
    const rttMs = Math.max(0, now - issuedAt - heldTenthMs / 10)
    member.rttMs = member.rttMs === undefined ? rttMs : mix(member.rttMs, rttMs)
  }

  /** Some random members, for a peer whose view differs from ours. */
  somePeers(to: Member, count = peersPerBeat): Peers[] {
    const all = this.#parts.members.all()
    const addresses = new Set<string>()
    const wanted = Math.min(count, peersMax, all.length)
    let room = peersBytesMax
    for (let tries = 0; tries < wanted * 2 && addresses.size < wanted; tries += 1) {
      const member = all[Math.floor(this.#parts.random() * all.length)]
      if (member === undefined || member === to || addresses.has(member.address)) continue
      room -= Buffer.byteLength(member.address) + textOverheadBytes
      if (room < 0) break
      addresses.add(member.address)
    }
    return addresses.size === 0 ? [] : [{ type: 'peers', addresses: [...addresses] }]
  }
}

function wholeMs(ms: number): number {
  return Math.min(Math.floor(ms), durationMsMax)
}

function tenths(ms: number): number {
  return Math.max(0, Math.round(ms * 10))
}

function mix(before: number, sample: number): number {
  return before + rttWeight * (sample - before)
}
