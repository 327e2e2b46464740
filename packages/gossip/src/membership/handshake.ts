// How a node becomes a member: by sending back a token that it can only have from us, and that is fresh.
//
//   A → B   hello with token a
//   B → A   hello, with token b and a sent back     A: B is a member
//   A → B   hello, with b sent back                 B: A is a member
//
// A may know B already and be forgotten by it, after it stood still for long: it sends b back all the same.
//
// Recorded traffic never adds, revives or moves a member. Whoever answers a hello learns no more than the
// hello itself told. A member that is silent is greeted again, wherever it ever answered: it moves to where it
// answers from. One that is alive is reached where it is, and stays.

import type { GossipParts } from '../gossip-parts.ts'
import type { Address } from '../transport/address.ts'
import type { DropReason } from '../wire/drops.ts'
import type { Frame } from '../wire/frame.ts'
import type { Heartbeat, Hello, Message } from '../wire/messages.ts'
import type { Heartbeats } from './heartbeats.ts'
import type { Member, MemberOptions } from './member.ts'

/** Less than it takes for a member to be given up: nothing that it said in life brings it back. */
const tokenLifeMs = 2_000
const tokensMax = 8_192
const repliesPerSecondMax = 2_000

interface HandshakeOptions {
  readonly nodeId: string
  /** Not told to anybody: a node is where its answers come from. */
  readonly advertise: () => Address
}

/** A token that came back: where it had been sent, and when. */
export interface Proof {
  readonly to: Address
  readonly at: number
  /** It went with a greeting of ours, not with an answer. */
  readonly isGreeting: boolean
}

interface MemberHello {
  readonly member: Member
  readonly proof: Proof | undefined
  readonly from: Address
  readonly now: number
}

/** The new member; or that it was answered; or why there is nothing to answer. */
export type Arrival = MemberOptions | DropReason | 'answered'

export class Handshake {
  readonly #parts: GossipParts
  readonly #heartbeats: Heartbeats
  readonly #options: HandshakeOptions
  /** Of hellos under way, by their tokens; oldest first. */
  readonly #tokens = new Map<number, Proof>()
  #repliesLeft = repliesPerSecondMax
  #repliesFrom = 0

  constructor(parts: GossipParts, heartbeats: Heartbeats, options: HandshakeOptions) {
    this.#parts = parts
    this.#heartbeats = heartbeats
    this.#options = options
  }

  /** Greets the addresses whose turn it is. */
  greet(now: number): void {
    const { candidates, members, wire } = this.#parts
    const isTaken = (address: Address, owner: string | undefined) => {
      if (address === this.#options.advertise()) return true
      const answeredThere = owner === undefined ? undefined : members.get(owner)
      return members.at(address)?.state === 'alive' || answeredThere?.state === 'alive'
    }
    for (const address of candidates.take(now, isTaken)) {
      wire.send([this.#hello(address, false, now)], address)
    }
  }

  /** A datagram of one who is no member: whether it is one now. */
  receive(frame: Frame, messages: readonly Message[], from: Address, now: number): Arrival {
    const hello = messages.find((message) => message.type === 'hello')
    if (hello === undefined) {
      this.#parts.candidates.heardStranger(from, now)
      return 'unknown'
    }
    const proven = this.provenBy(messages, now)
    if (proven !== undefined) {
      const { sender, incarnation, sequence } = frame
      const { to: address, at: echoedAt } = proven
      return { nodeId: hello.nodeId, sender, incarnation, address, sequence, echoedAt }
    }
    if (hello.isReply) return 'unknown'
    return this.#mayReply(now) ? this.#reply(hello, undefined, from, now) : 'limit'
  }

  /** A member greets: it does not know us (any more), or tries an address of ours. Or it answers our greeting, as one does
   * that has given us up and waits for its token; that is answered once. */
  receiveFromMember(hello: Hello, { member, proof, from, now }: MemberHello): void {
    const isWaitedFor = !hello.isReply || proof?.isGreeting === true
    if (isWaitedFor && this.#mayReply(now)) this.#reply(hello, member, from, now)
  }

  /** Tells a new member that it is one, with all that it needs. */
  welcome(member: Member, hello: Hello, more: readonly Message[], now: number): void {
    const own = this.#hello(member.address, true, now)
    const echo = this.#heartbeats.forHello(hello, member, own.token, now)
    this.#parts.wire.sendTo([member], [own, echo, ...more])
  }

  /** What these messages prove, if they do. A token counts once. */
  provenBy(messages: readonly Message[], now: number): Proof | undefined {
    const heartbeat = messages.find((message): message is Heartbeat => message.type === 'heartbeat')
    const proven = heartbeat && this.#tokens.get(heartbeat.echo)
    if (heartbeat !== undefined) this.#tokens.delete(heartbeat.echo)
    return proven !== undefined && now - proven.at <= tokenLifeMs ? proven : undefined
  }

  #reply(hello: Hello, member: Member | undefined, from: Address, now: number): 'answered' {
    const own = this.#hello(from, true, now)
    const echo = this.#heartbeats.forHello(hello, member, own.token, now)
    this.#parts.wire.send([own, echo], from)
    return 'answered'
  }

  #hello(to: Address, isReply: boolean, now: number): Hello {
    const token = this.#parts.tokens.issueForHello(now)
    this.#tokens.set(token, { to, at: now, isGreeting: !isReply })
    for (const [old, { at }] of this.#tokens) {
      if (this.#tokens.size <= tokensMax && now - at <= tokenLifeMs) break
      this.#tokens.delete(old)
    }
    const known = this.#parts.candidates.size
    return { type: 'hello', isReply, nodeId: this.#options.nodeId, token, known }
  }

  #mayReply(now: number): boolean {
    if (now - this.#repliesFrom >= 1_000) {
      this.#repliesFrom = now
      this.#repliesLeft = repliesPerSecondMax
    }
    this.#repliesLeft -= 1
    return this.#repliesLeft >= 0
  }
}
