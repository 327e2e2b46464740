const perMs = 8

/** Tokens that tell their age. A peer sends them back; only one that was issued here, in this life and not
 * long ago proves anything, so recorded traffic never does. */
export class TokenClock {
  readonly #first: number
  #last: number

  constructor(random: () => number, nowMs: number) {
    // Where a life begins to count is random: tokens of an earlier one are never taken for this one's.
    this.#first = Math.floor((1 + random()) * 2 ** 50) - Math.floor(nowMs * perMs)
    this.#last = this.#at(nowMs)
  }

  /** Never the same twice. */
  issue(nowMs: number): number {
    this.#last = Math.max(this.#last + 1, this.#at(nowMs))
    return this.#last
  }

  /** Undefined: not one of ours. */
  issuedAt(token: number, nowMs: number): number | undefined {
    if (token > this.#last) return undefined
    return Math.min(nowMs, (token - this.#first) / perMs)
  }

  #at(nowMs: number): number {
    return this.#first + Math.floor(nowMs * perMs)
  }
}
