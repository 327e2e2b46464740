// Every T each member gets a heartbeat of its own: it says that we live, sends back the member's token, and
// carries what lets either side notice lost hints, an outdated interest, or a member that is not known. Who
// was sent hints gets some more of them soon after: they tell it what it should have got.
import type { GossipParts } from '../gossip-parts.ts'
import { durationMsMax, peersBytesMax, peersMax } from '../wire/message-reader.ts'
import type { Heartbeat, Hello, Message, Peers } from '../wire/messages.ts'
import type { Member } from './member.ts'

const rttWeight = 0.2
const jitter = 0.1
/** Whoever lacks a member sees others than all who have it, and each of them tells it of so many. */
const peersPerBeat = 3
const textOverheadBytes = 2
/** Answers out of turn to one member; the next heartbeat brings what they leave out. */
const answerGapMs = 100

/** So many heartbeats follow a hint, seven times as often as others. */
const eagerBeats = 8
const eagerPace = 0.14

export class Heartbeats {
  readonly #parts: GossipParts
  #nextAt = Number.POSITIVE_INFINITY
  /** Members that were sent hints, and how many heartbeats they get soon. */
  readonly #eager = new Map<Member, number>()
  #eagerAt = Number.POSITIVE_INFINITY

  constructor(parts: GossipParts) {
    this.#parts = parts
  }

  get nextAt(): number {
    return Math.min(this.#nextAt, this.#eagerAt)
  }

  /** Sends the heartbeats that are due, and answers whose turn it was. */
  beat(now: number): Member[] {
    if (this.#eagerAt <= now) this.#beatEagerly(now)
    return this.#nextAt <= now ? this.#beatSlice(now) : []
  }

  /** These were sent hints. */
  hurry(members: readonly Member[], now: number): void {
    for (const member of members) this.#eager.set(member, eagerBeats)
    if (this.#eagerAt === Number.POSITIVE_INFINITY && members.length > 0) {
      this.#eagerAt = now + eagerPace * this.#parts.intervalMs()
    }
  }

  #beatEagerly(now: number): void {
    for (const [member, left] of this.#eager) {
      if (left === 1) this.#eager.delete(member)
      else this.#eager.set(member, left - 1)
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

  /** There is a member now. */
  begin(now: number): void {
    this.#nextAt = Math.min(this.#nextAt, now + this.#parts.intervalMs() * this.#parts.random())
  }

  send(member: Member, now: number): void {
    const messages: Message[] = [this.forMember(member, now)]
    if (member.view !== this.#parts.members.view) messages.push(...this.somePeers(member))
    this.#parts.wire.sendTo([member], messages)
  }

  /** Out of turn, so that the member need not wait to learn that it was heard. */
  answer(member: Member, now: number): void {
    if (now - member.answeredAt < answerGapMs) return
    member.answeredAt = now
    this.send(member, now)
  }

  forMember(member: Member, now: number): Heartbeat {
    const token = this.#parts.tokens.issue(now)
    return this.#compose(member, token, member.token, tenths(now - member.tokenAt), now)
  }

  /** Beside a hello with this token: sends back that of another hello. Its sender need not be a member. */
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
      interestVersion: interest.news.version,
      interestHeld: member?.interest.version ?? 0,
      view: members.view,
    }
  }

  /** Its numbers run over all its peers, so what a member said to another is as new here as what it said to
   * us. But only we have the tokens that come back with what is for us. */
  isForUs({ echo }: Member, heartbeat: Heartbeat): boolean {
    return this.#parts.tokens.isOwn(heartbeat.echo, echo)
  }

  /** Takes in what a member says. Answers how many batches of hints were lost. */
  receive(member: Member, heartbeat: Heartbeat, now: number): number {
    member.echo = Math.max(member.echo, heartbeat.echo)
    this.#noteEcho(member, heartbeat, now)
    if (heartbeat.token <= member.token) return 0
    member.token = heartbeat.token
    member.tokenAt = now
    member.intervalMs = heartbeat.intervalMs
    member.sinceHeardMs = heartbeat.sinceHeardMs
    member.view = heartbeat.view
    member.interest.announce(heartbeat.interestVersion)
    member.interestHeld = heartbeat.interestHeld
    return member.inbox.compare(heartbeat)
  }

  /** What came back of a hello shows an address that was tried, which need not be the member's. */
  #noteEcho(member: Member, { echo, heldTenthMs }: Heartbeat, now: number): void {
    if (this.#parts.tokens.isForHello(echo)) return
    const issuedAt = this.#parts.tokens.issuedAt(echo, now)
    if (issuedAt === undefined || issuedAt <= member.echoedAt) return
    member.echoedAt = issuedAt
    const rttMs = Math.max(0, now - issuedAt - heldTenthMs / 10)
    member.rttMs = member.rttMs === undefined ? rttMs : mix(member.rttMs, rttMs)
  }

  /** Some members at random, for one who sees others than we do. */
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
