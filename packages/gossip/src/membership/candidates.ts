import type { GossipPreset } from '../preset.ts'
import type { Address } from '../transport/address.ts'
import type { SenderKey } from '../wire/frame.ts'

export const candidatesMax = 4_096
/** How many candidates may be known only because a datagram came from their address. A recorded datagram can
 * be replayed from any address, so it must neither displace other candidates nor cause many hellos to its
 * source. */
export const overheardMax = 256
const overheardForMs = 2_000
/** The most hellos in one burst; the rest follow a moment later. */
const burstMax = 64
const burstGapMs = 5
/** How long to try an address that only a peer reported. */
const learnedForMs = 600_000

interface Candidate {
  readonly address: Address
  learnedUntil: number
  /** The node that answered there last. */
  owner: SenderKey | undefined
  helloAt: number
  backoffMs: number
  /** A node at this address sends to us as to a member, but is not a member here. */
  isStranger: boolean
}

/** Addresses where a peer may be. Addresses that a source lists are never dropped, so the two sides of a
 * split cluster find each other again. When space runs out, unlisted addresses are dropped. */
export class Candidates {
  readonly #preset: GossipPreset
  readonly #candidates = new Map<Address, Candidate>()
  /** The addresses by source. A set of sources per candidate would take most of a node's memory. */
  readonly #listed = new Map<string, Set<Address>>()
  /** Addresses known only from a datagram. */
  readonly #overheard = new Set<Address>()
  /** Members whose addresses soon get hellos again. They are handled together, because many members may fall
   * silent at once. */
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

  /** The list from one source. It replaces the list that the source gave before. */
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

  /** A peer reported this address. */
  learn(address: Address, now: number): void {
    const candidate = this.#open(address, now)
    if (candidate === undefined) return
    this.#overheard.delete(address)
    candidate.learnedUntil = now + learnedForMs
  }

  /** A datagram came from this address. */
  overhear(address: Address, now: number): void {
    const isNew = !this.#candidates.has(address)
    if (isNew && this.#overheard.size >= overheardMax) return
    const candidate = this.#open(address, now)
    if (candidate === undefined) return
    if (isNew) this.#overheard.add(address)
    candidate.learnedUntil = Math.max(candidate.learnedUntil, now + overheardForMs)
  }

  /** A node that is not a member sends to us from this address. It gets a hello, even if a member is believed
   * to have this address. */
  heardStranger(address: Address, now: number): void {
    this.overhear(address, now)
    const candidate = this.#candidates.get(address)
    if (candidate === undefined || candidate.isStranger) return
    candidate.isStranger = true
    // A node at a listed address has probably stalled, and we declared it dead meanwhile.
    const waitMs = this.#isListed(address) ? this.#preset.helloFirstMs : candidate.backoffMs
    candidate.helloAt = Math.min(candidate.helloAt, now + waitMs)
    this.#nextAt = Math.min(this.#nextAt, candidate.helloAt)
  }

  answered(address: Address, owner: SenderKey): void {
    const candidate = this.#candidates.get(address)
    if (candidate !== undefined) candidate.owner = owner
  }

  /** A datagram that this node sent came from this address. The address may be an alias of our own, or an
   * attacker may replay the datagram from the address of a peer. So the address gets hellos rarely, but still
   * gets some. */
  slowDown(address: Address): void {
    const candidate = this.#candidates.get(address)
    if (candidate !== undefined) candidate.backoffMs = this.#preset.helloMaxMs
  }

  /** A member is silent or dead. All its addresses soon get hellos: the member may answer at a different
   * address, and a successor may answer at the last address. */
  retry(owner: SenderKey, address: Address, now: number): void {
    this.learn(address, now)
    this.#retried.add(owner)
    this.#passSoon(now)
  }

  /** A member left, so no node is expected at its addresses for now. */
  rest(owner: SenderKey, now: number): void {
    this.#retried.delete(owner)
    for (const candidate of this.#candidates.values()) {
      if (candidate.owner !== owner) continue
      candidate.learnedUntil = now
      candidate.helloAt = now + this.#preset.helloMaxMs
      this.#forgetUnlisted(candidate, now)
    }
  }

  /** Takes the addresses that get a hello now. */
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
    this.#passSoon(now)
    return candidate
  }

  /** Schedules a pass over all candidates. While a large cluster forms, every datagram reports new
   * addresses, so one pass serves many datagrams. */
  #passSoon(now: number): void {
    this.#nextAt = Math.min(this.#nextAt, Math.max(now, this.#tookAt + burstGapMs))
  }

  #backOff(candidate: Candidate, now: number): void {
    candidate.helloAt = now + candidate.backoffMs
    candidate.backoffMs = Math.min(candidate.backoffMs * 2, this.#preset.helloMaxMs)
  }

  /** Postpones the hello to a multiple of `helloMaxMs`, so that one pass serves many candidates. */
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
