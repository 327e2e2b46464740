// How a node becomes a member: it returns a fresh token that only we can have issued.
//
//   A → B   hello with token a
//   B → A   hello with token b, returns a     A: B is a member
//   A → B   hello, returns b                  B: A is a member
//
// After a long stall of A, B may have dropped A while A still has B as a member. A then still returns b, so
// that B adds A again.
//
// Recorded traffic never adds, revives or moves a member. The answer to a hello reveals no more than the
// hello did. A silent member gets hellos at every address where it ever answered, and moves to the address
// where it answers now. A member that is alive keeps its address.

import type { GossipParts } from '../gossip-parts.ts'
import type { Address } from '../transport/address.ts'
import type { DropReason } from '../wire/drops.ts'
import type { Frame } from '../wire/frame.ts'
import type { Heartbeat, Hello, Message } from '../wire/messages.ts'
import type { Heartbeats } from './heartbeats.ts'
import type { Member, MemberOptions } from './member.ts'

/** Less than the time until a member is declared dead, so old messages of a dead member cannot revive it. */
const tokenLifeMs = 2_000
const tokensMax = 8_192
const repliesPerSecondMax = 2_000

interface HandshakeOptions {
  readonly nodeId: string
  /** Used only to skip our own address. Peers use the address that our answers come from. */
  readonly advertise: () => Address
}

/** Where and when we sent a token that has come back. */
export interface Proof {
  readonly to: Address
  readonly at: number
  /** Whether the token was in a hello that started a handshake, and not in the reply to a hello. */
  readonly isGreeting: boolean
}

interface MemberHello {
  readonly member: Member
  readonly proof: Proof | undefined
  readonly from: Address
  readonly now: number
}

/** The new member, or `answered`, or the reason to drop the datagram. */
export type Arrival = MemberOptions | DropReason | 'answered'

export class Handshake {
  readonly #parts: GossipParts
  readonly #heartbeats: Heartbeats
  readonly #options: HandshakeOptions
  /** Hellos in flight by token, oldest first. */
  readonly #tokens = new Map<number, Proof>()
  #repliesLeft = repliesPerSecondMax
  #repliesFrom = 0

  constructor(parts: GossipParts, heartbeats: Heartbeats, options: HandshakeOptions) {
    this.#parts = parts
    this.#heartbeats = heartbeats
    this.#options = options
  }

  /** Sends hellos to the addresses that are due. */
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

  /** Handles a datagram from a non-member. Returns whether the sender is a member now. */
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

  /** A member sends a hello if it does not have us as a member, or to try another address of ours. A
   * member that had dropped us and replies to our hello needs its token back, so it gets one answer. */
  receiveFromMember(hello: Hello, { member, proof, from, now }: MemberHello): void {
    const isWaitedFor = !hello.isReply || proof?.isGreeting === true
    if (isWaitedFor && this.#mayReply(now)) this.#reply(hello, member, from, now)
  }

  /** Confirms to a new member that it is a member, and adds the messages in `more`. */
  welcome(member: Member, hello: Hello, more: readonly Message[], now: number): void {
    const own = this.#hello(member.address, true, now)
    const echo = this.#heartbeats.forHello(hello, member, own.token, now)
    this.#parts.wire.sendTo([member], [own, echo, ...more])
  }

  /** The proof from the token that these messages return, if the token is valid. Each token counts once. */
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
