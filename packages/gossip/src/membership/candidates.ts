import type { GossipPreset } from '../preset.ts'
import type { Address } from '../transport/address.ts'
import type { SenderKey } from '../wire/frame.ts'

export const candidatesMax = 4_096
/** So many of them may be known by a datagram alone. A recorded one can be sent from anywhere, so what it
 * tells must neither take the room of others nor bring its source many greetings. */
export const overheardMax = 256
const overheardForMs = 2_000
/** So many are greeted at once; the rest a moment later. */
const burstMax = 64
const burstGapMs = 5
/** How long an address that only a peer told of is tried. */
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
 * in two grows together by itself; where there is no room for them the others go. */
export class Candidates {
  readonly #preset: GossipPreset
  readonly #candidates = new Map<Address, Candidate>()
  /** Per source, not per candidate: thousands of small sets would be most of what a node keeps. */
  readonly #listed = new Map<string, Set<Address>>()
  /** Of those that nobody else told of. */
  readonly #overheard = new Set<Address>()
  /** Owners whose addresses are greeted anew. They are looked up together, as many may fall silent at once. */
  readonly #retried = new Set<SenderKey>()
  #nextAt = Number.POSITIVE_INFINITY
  #tookAt = Number.NEGATIVE_INFINITY

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
    this.#makeRoom(listed)
    for (const address of listed) {
      this.#overheard.delete(address)
      if (this.#open(address, now) === undefined) listed.delete(address)
    }
  }

  /** A peer told of it. */
  learn(address: Address, now: number): void {
    const candidate = this.#open(address, now)
    if (candidate === undefined) return
    this.#overheard.delete(address)
    candidate.learnedUntil = now + learnedForMs
  }

  /** A datagram came from there. */
  overhear(address: Address, now: number): void {
    const isNew = !this.#candidates.has(address)
    if (isNew && this.#overheard.size >= overheardMax) return
    const candidate = this.#open(address, now)
    if (candidate === undefined) return
    if (isNew) this.#overheard.add(address)
    candidate.learnedUntil = Math.max(candidate.learnedUntil, now + overheardForMs)
  }

  /** Somebody there speaks to us whom we do not know: greet, even where we believe another to be. */
  heardStranger(address: Address, now: number): void {
    this.overhear(address, now)
    const candidate = this.#candidates.get(address)
    if (candidate === undefined || candidate.isStranger) return
    candidate.isStranger = true
    // At an address that is listed it is likely a node that we gave up while it stood still.
    const waitMs = this.#isListed(address) ? this.#preset.helloFirstMs : candidate.backoffMs
    candidate.helloAt = Math.min(candidate.helloAt, now + waitMs)
    this.#nextAt = Math.min(this.#nextAt, candidate.helloAt)
  }

  answered(address: Address, owner: SenderKey): void {
    const candidate = this.#candidates.get(address)
    if (candidate !== undefined) candidate.owner = owner
  }

  /** A datagram of our own came from there. It may be ours by another name, or a recorded one that somebody sent
   * again from anywhere: so it is greeted seldom, not never. */
  slowDown(address: Address): void {
    const candidate = this.#candidates.get(address)
    if (candidate !== undefined) candidate.backoffMs = this.#preset.helloMaxMs
  }

  /** A member is silent or gone: it is found soon where else it is, or who comes up next where it was. */
  retry(owner: SenderKey, address: Address, now: number): void {
    this.learn(address, now)
    this.#retried.add(owner)
    this.#lookSoon(now)
  }

  /** It left: there is nobody to be expected there for now. */
  rest(owner: SenderKey, now: number): void {
    this.#retried.delete(owner)
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
      if (this.#forgetUnlisted(candidate, now)) continue
      if (candidate.owner !== undefined && this.#retried.has(candidate.owner)) {
        candidate.backoffMs = this.#preset.helloFirstMs
        candidate.helloAt = Math.min(candidate.helloAt, now + candidate.backoffMs)
      }
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
    }
    this.#retried.clear()
    this.#tookAt = now
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
    this.#lookSoon(now)
    return candidate
  }

  /** A look goes over all of them. While a large cluster joins every datagram tells of somebody new, so one look serves many. */
  #lookSoon(now: number): void {
    this.#nextAt = Math.min(this.#nextAt, Math.max(now, this.#tookAt + burstGapMs))
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

  #forgetUnlisted({ address, learnedUntil }: Candidate, now: number): boolean {
    if (learnedUntil > now || this.#isListed(address)) return false
    this.#forget(address)
    return true
  }

  #forget(address: Address): void {
    this.#candidates.delete(address)
    this.#overheard.delete(address)
  }

  #makeRoom(listed: ReadonlySet<Address>): void {
    let wanted = this.#candidates.size - candidatesMax
    for (const address of listed) if (!this.#candidates.has(address)) wanted += 1
    if (wanted <= 0) return
    for (const address of [...this.#overheard, ...this.#candidates.keys()]) {
      if (wanted <= 0) return
      if (!this.#candidates.has(address) || this.#isListed(address)) continue
      this.#forget(address)
      wanted -= 1
    }
  }

  #isListed(address: Address): boolean {
    for (const listed of this.#listed.values()) if (listed.has(address)) return true
    return false
  }
}
