// Watches silent members. Before a member is declared dead, three peers are asked about it. Peers can answer
// without a probe, because every node watches every other node anyway.
import type { GossipParts } from '../gossip-parts.ts'
import type { Vouch, VouchRequest } from '../wire/messages.ts'
import { isTimeToAsk, judge, type Member, nextCheckAt, type Verdict } from './member.ts'

const askedPeers = 3

export class MemberWatch {
  readonly #parts: GossipParts
  readonly #onVerdict: (member: Member, verdict: Verdict, now: number) => void
  /** Members that are not alive. */
  readonly #watched = new Set<Member>()
  /** When to judge these members next. A datagram from a member does not change this time: while half of a
   * large cluster is silent, a check that comes too early is cheaper than a scan on every datagram. */
  #nextAt = Number.POSITIVE_INFINITY

  constructor(
    parts: GossipParts,
    onVerdict: (member: Member, verdict: Verdict, now: number) => void,
  ) {
    this.#parts = parts
    this.#onVerdict = onVerdict
  }

  get nextAt(): number {
    return this.#nextAt
  }

  /** Judges these members, and those that were silent before. */
  judge(members: readonly Member[], now: number): void {
    for (const member of members) if (member.state === 'alive') this.#judge(member, now)
    for (const member of Array.from(this.#watched)) {
      if (this.#parts.members.get(member.sender) !== member) {
        // The member left, or a later incarnation replaced it.
        this.#watched.delete(member)
        continue
      }
      this.#askAbout(member, now)
      this.#judge(member, now)
    }
    this.#plan()
  }

  /** The member returned a token of ours: each side hears the other. */
  provenAlive(member: Member, now: number): void {
    if (member.state === 'alive') return
    const unheardMs = this.#parts.preset.deadAfter * this.#parts.intervalMs()
    if (now - member.echoedAt < unheardMs) this.#set(member, 'alive', now)
  }

  vouch(request: VouchRequest, asker: Member, now: number): void {
    const { sender, incarnation, token: echo } = request
    const member = this.#parts.members.get(sender)
    if (member?.incarnation !== incarnation) return
    const sinceHeardMs = Math.floor(now - member.heardAt)
    this.#parts.wire.sendTo([asker], [{ type: 'vouch', sender, incarnation, sinceHeardMs, echo }])
  }

  vouchedFor({ sender, incarnation, sinceHeardMs, echo }: Vouch, now: number): void {
    const { members, preset, tokens } = this.#parts
    const member = members.get(sender)
    if (member?.incarnation !== incarnation) return
    const lately = preset.suspectAfter * this.#parts.intervalMs()
    const askedAt = tokens.issuedAt(echo, now) ?? Number.NEGATIVE_INFINITY
    if (sinceHeardMs < lately && now - askedAt < lately) member.vouchedAt = now
  }

  #plan(): void {
    const { preset } = this.#parts
    const ownMs = this.#parts.intervalMs()
    this.#nextAt = Number.POSITIVE_INFINITY
    for (const member of this.#watched) {
      this.#nextAt = Math.min(this.#nextAt, nextCheckAt(member, preset, ownMs))
    }
  }

  #judge(member: Member, now: number): void {
    const verdict = judge(member, now, this.#parts.preset, this.#parts.intervalMs())
    if (verdict !== member.state) this.#set(member, verdict, now)
  }

  #set(member: Member, verdict: Verdict, now: number): void {
    if (verdict === 'suspect' || verdict === 'unreachable') this.#watched.add(member)
    else this.#watched.delete(member)
    this.#onVerdict(member, verdict, now)
  }

  #askAbout(member: Member, now: number): void {
    const { preset, members, random, tokens, wire } = this.#parts
    if (!isTimeToAsk(member, now, preset, this.#parts.intervalMs())) return
    member.askedAt = now
    const others = members.all().filter((other) => other.state === 'alive' && other !== member)
    const asked = new Set<Member>()
    for (let tries = 0; tries < askedPeers * 2 && asked.size < askedPeers; tries += 1) {
      const other = others[Math.floor(random() * others.length)]
      if (other !== undefined) asked.add(other)
    }
    const { sender, incarnation } = member
    const token = tokens.issue(now)
    wire.sendTo([...asked], [{ type: 'vouch request', sender, incarnation, token }])
  }
}
