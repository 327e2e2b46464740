import type { GossipParts } from '../gossip-parts.ts'
import type { InterestSync } from '../interest/interest-sync.ts'
import type { GossipPorts, PeerEvent } from '../ports.ts'
import type { Address } from '../transport/address.ts'
import { Member, type MemberOptions, type Verdict } from './member.ts'
import { type PeerView, viewOf } from './peer-view.ts'

/** Adds, moves and removes members, and reports the changes. */
export class Roster {
  readonly #parts: GossipParts
  readonly #interest: InterestSync
  readonly #ports: GossipPorts

  constructor(parts: GossipParts, interest: InterestSync, ports: GossipPorts) {
    this.#parts = parts
    this.#interest = interest
    this.#ports = ports
  }

  /** Adds a member. Removes an earlier incarnation of the node, and any other member at the same address. */
  admit(options: MemberOptions, now: number): Member {
    const { members, candidates, outbox } = this.#parts
    const earlier = members.get(options.sender)
    if (earlier !== undefined) this.remove(earlier, 'dead', now)
    this.#vacate(options.address, now)
    const member = new Member(options, outbox.lastBatch, now)
    members.add(member)
    candidates.learn(member.address, now)
    candidates.answered(member.address, member.sender)
    this.#tell(member, 'joined', now)
    return member
  }

  /** The member answers at the new address and no longer at the old one. */
  move(member: Member, address: Address, now: number): void {
    if (member.address === address) return
    this.#vacate(address, now)
    this.#parts.members.move(member, address)
    this.#parts.candidates.learn(address, now)
  }

  judged(member: Member, verdict: Verdict, now: number): void {
    if (verdict === 'dead') {
      this.remove(member, 'dead', now)
      return
    }
    if (member.state === 'alive') {
      this.#parts.candidates.retry(member.sender, member.address, now)
      this.#parts.outbox.giveUp(member, now)
    }
    member.state = verdict
    member.since = now
    this.#tell(member, verdict, now)
  }

  remove(member: Member, how: 'dead' | 'left', now: number): void {
    const { members, candidates, outbox } = this.#parts
    members.remove(member, how, now)
    outbox.giveUp(member, now)
    if (how === 'dead') candidates.retry(member.sender, member.address, now)
    else candidates.rest(member.sender, now)
    this.#tell(member, how, now)
  }

  views(now: number): PeerView[] {
    const { members } = this.#parts
    const departed = Array.from(members.departed(now), ({ member, how, at }) => {
      return { ...this.#view(member, now), state: how, inStateMs: now - at }
    })
    return [...members.all().map((member) => this.#view(member, now)), ...departed]
  }

  #vacate(address: Address, now: number): void {
    const there = this.#parts.members.at(address)
    if (there !== undefined) this.remove(there, 'dead', now)
  }

  #tell(member: Member, event: PeerEvent, now: number): void {
    this.#interest.membersChanged(now)
    const view = this.#view(member, now)
    this.#ports.onPeer?.({ ...view, state: event === 'joined' ? 'alive' : event }, event)
  }

  #view(member: Member, now: number): PeerView {
    return viewOf(member, now, this.#parts.preset.suspectAfter * this.#parts.intervalMs())
  }
}
