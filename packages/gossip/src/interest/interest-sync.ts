import type { GossipParts } from '../gossip-parts.ts'
import type { Member } from '../membership/member.ts'
import type { Interest } from './own-interest.ts'

/** The larger the cluster, the less often interest is sent and compared with what peers hold. */
const gapPerNodeMs = 0.5
const resendAfterMs = 50

/** Sends this node's interest to its peers, and reports to the caller which version all peers hold. */
export class InterestSync {
  readonly #parts: GossipParts
  readonly #onEchoed: (version: number) => void
  #sendAt = Number.POSITIVE_INFINITY
  #sentAt = Number.NEGATIVE_INFINITY
  #compareAt = Number.POSITIVE_INFINITY
  #echoed = 0

  constructor(parts: GossipParts, onEchoed: (version: number) => void) {
    this.#parts = parts
    this.#onEchoed = onEchoed
  }

  get nextAt(): number {
    return Math.min(this.#sendAt, this.#compareAt)
  }

  set(interest: Interest, now: number): void {
    this.#parts.interest.set(interest, now)
    this.#planSending(now)
  }

  tick(now: number): void {
    if (this.#sendAt <= now) this.#sendIfNew(now)
    if (this.#compareAt <= now) this.#compare()
  }

  /** Called when a member has joined, has left, or holds another version. */
  membersChanged(now: number): void {
    const gapMs = this.#parts.members.size > 64 ? this.#gapMs() : 0
    this.#compareAt = Math.min(this.#compareAt, now + gapMs)
  }

  /** Sends our interest to a member that holds an old version, unless a copy may still be in flight. */
  sendIfBehind(member: Member, now: number): void {
    const { message } = this.#parts.interest
    if (member.interestHeld === message.version || now - member.interestSentAt < resendAfterMs)
      return
    member.interestSentAt = now
    this.#parts.wire.sendTo([member], [message])
  }

  #sendIfNew(now: number): void {
    const { interest, members, wire } = this.#parts
    if (interest.refresh(now)) {
      this.#sentAt = now
      for (const member of members.all()) member.interestSentAt = now
      wire.sendTo(members.all(), [interest.message])
    }
    this.#planSending(now)
    this.membersChanged(now)
  }

  #planSending(now: number): void {
    const { dirtyAt } = this.#parts.interest
    const soonest = Math.max(now, this.#sentAt + this.#gapMs())
    this.#sendAt = dirtyAt === Number.POSITIVE_INFINITY ? dirtyAt : Math.max(soonest, dirtyAt)
  }

  #compare(): void {
    this.#compareAt = Number.POSITIVE_INFINITY
    const { interest, members } = this.#parts
    let least: number | 'no peers' = 'no peers'
    for (const { state, interestHeld } of members.all()) {
      // A peer that we cannot hear cannot send us hints either.
      if (state === 'unreachable') continue
      least = least === 'no peers' ? interestHeld : Math.min(least, interestHeld)
    }
    const version = interest.callerVersion(least)
    if (version === this.#echoed) return
    this.#echoed = version
    this.#onEchoed(version)
  }

  #gapMs(): number {
    return Math.max(this.#parts.preset.interestGapMs, gapPerNodeMs * this.#parts.members.size)
  }
}
