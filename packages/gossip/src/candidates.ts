import type { Address } from './address.ts'
import type { SenderKey } from './frame.ts'
import type { GossipPreset } from './preset.ts'

export const candidatesMax = 4_096
/** So many are greeted at once; the rest a moment later. */
const burstMax = 64
const burstGapMs = 5
/** How long an address that only a datagram or a peer told of is tried. */
const learnedForMs = 600_000

interface Candidate {
  readonly address: Address
  learnedUntil: number
  /** Who answered there last. */
  owner: SenderKey | undefined
  helloAt: number
  backoffMs: number
  /** Whoever is there takes us for a member, and is none of ours. */
  isStranger: boolean
}

/** Addresses where a node may be. Those that a source lists are never given up, so a cluster that was cut
 * in two grows together by itself. */
export class Candidates {
  readonly #preset: GossipPreset
  readonly #candidates = new Map<Address, Candidate>()
  /** Per source, not per candidate: thousands of small sets would be most of what a node keeps. */
  readonly #listed = new Map<string, Set<Address>>()
  #nextAt = Number.POSITIVE_INFINITY

  constructor(preset: GossipPreset) {
    this.#preset = preset
  }

  get nextAt(): number {
    return this.#nextAt
  }

  get size(): number {
    return this.#candidates.size
  }

  /** What a source lists now, in place of what it listed before. */
  replace(source: string, addresses: Iterable<Address>, now: number): void {
    const before = this.#listed.get(source)
    const listed = new Set(addresses)
    this.#listed.set(source, listed)
    for (const address of before ?? []) {
      const candidate = this.#candidates.get(address)
      if (candidate !== undefined) this.#forgetUnlisted(candidate, now)
    }
    for (const address of listed) {
      if (this.#open(address, now) === undefined) listed.delete(address)
    }
  }

  learn(address: Address, now: number): void {
    const candidate = this.#open(address, now)
    if (candidate !== undefined) candidate.learnedUntil = now + learnedForMs
  }

  /** Somebody there speaks to us whom we do not know: greet, even where we believe another to be. */
  heardStranger(address: Address, now: number): void {
    this.learn(address, now)
    const candidate = this.#candidates.get(address)
    if (candidate === undefined || candidate.isStranger) return
    candidate.isStranger = true
    candidate.helloAt = Math.min(candidate.helloAt, now + candidate.backoffMs)
    this.#nextAt = Math.min(this.#nextAt, candidate.helloAt)
  }

  answered(address: Address, owner: SenderKey): void {
    const candidate = this.#candidates.get(address)
    if (candidate !== undefined) candidate.owner = owner
  }

  /** A member is gone: whoever comes up next where it was is found soon. */
  retry(owner: SenderKey, address: Address, now: number): void {
    for (const candidate of this.#candidates.values()) {
      if (candidate.owner !== owner && candidate.address !== address) continue
      candidate.learnedUntil = Math.max(candidate.learnedUntil, now + learnedForMs)
      candidate.backoffMs = this.#preset.helloFirstMs
      candidate.helloAt = now + candidate.backoffMs
      this.#nextAt = Math.min(this.#nextAt, candidate.helloAt)
    }
  }

  /** It left: there is nobody to be expected there for now. */
  rest(owner: SenderKey, now: number): void {
    for (const candidate of this.#candidates.values()) {
      if (candidate.owner !== owner) continue
      candidate.learnedUntil = now
      candidate.helloAt = now + this.#preset.helloMaxMs
      this.#forgetUnlisted(candidate, now)
    }
  }

  /** The addresses to greet now. */
  take(
    now: number,
    isTaken: (address: Address, owner: SenderKey | undefined) => boolean,
  ): Address[] {
    const due: Address[] = []
    let nextAt = Number.POSITIVE_INFINITY
    for (const candidate of this.#candidates.values()) {
      if (candidate.helloAt <= now) {
        const { address, owner, isStranger } = candidate
        if (!isStranger && isTaken(address, owner)) this.#postpone(candidate, now)
        else if (due.length < burstMax) {
          due.push(address)
          candidate.isStranger = false
          this.#backOff(candidate, now)
        }
      }
      nextAt = Math.min(nextAt, Math.max(candidate.helloAt, now + burstGapMs))
      this.#forgetUnlisted(candidate, now)
    }
    this.#nextAt = nextAt
    return due
  }

  #open(address: Address, now: number): Candidate | undefined {
    const known = this.#candidates.get(address)
    if (known !== undefined || this.#candidates.size >= candidatesMax) return known
    const candidate: Candidate = {
      address,
      learnedUntil: 0,
      owner: undefined,
      helloAt: now,
      backoffMs: this.#preset.helloFirstMs,
      isStranger: false,
    }
    this.#candidates.set(address, candidate)
    this.#nextAt = Math.min(this.#nextAt, now)
    return candidate
  }

  #backOff(candidate: Candidate, now: number): void {
    candidate.helloAt = now + candidate.backoffMs
    candidate.backoffMs = Math.min(candidate.backoffMs * 2, this.#preset.helloMaxMs)
  }

  /** Whole intervals, so that one look serves many. */
  #postpone(candidate: Candidate, now: number): void {
    const { helloMaxMs, helloFirstMs } = this.#preset
    candidate.helloAt = (Math.floor(now / helloMaxMs) + 2) * helloMaxMs
    candidate.backoffMs = helloFirstMs
  }

  #forgetUnlisted(candidate: Candidate, now: number): void {
    if (candidate.learnedUntil > now || this.#isListed(candidate.address)) return
    this.#candidates.delete(candidate.address)
  }

  #isListed(address: Address): boolean {
    for (const listed of this.#listed.values()) if (listed.has(address)) return true
    return false
  }
}
