const perMs = 16
/** Below 2⁵³ for as long as any process lives. */
const leastStart = 2 ** 50
const startRange = 6 * 2 ** 50
const overtakenForMs = 10_000

/** Tokens that tell their age. A peer sends them back; only one that was issued here, in this life and not
 * long ago proves anything, so recorded traffic never does. And who sends one back speaks to us: of two lives
 * that last for a month, one pair in a hundred thousand counts through the same numbers at all. */
export class TokenClock {
  readonly #first: number
  readonly #start: number
  #last: number

  constructor(random: () => number, nowMs: number) {
    // Where a life begins to count is random: tokens of another one are not taken for this one's.
    this.#start = leastStart + Math.floor(random() * startRange)
    this.#first = this.#start - Math.floor(nowMs * perMs)
    this.#last = this.#start
  }

  /** For a member, at the address where it lives. Never the same twice. */
  issue(nowMs: number): number {
    return this.#next(nowMs, 0)
  }

  /** To go with a hello, to an address that has yet to prove good. */
  issueForHello(nowMs: number): number {
    return this.#next(nowMs, 1)
  }

  isForHello(token: number): boolean {
    return token % 2 === 1
  }

  /** Whether a token is ours, and not older than another of ours but for as long as datagrams take that are
   * overtaken. Tokens come back in the order in which they were sent, so that leaves but a few seconds in
   * which another's could be taken for ours. */
  isOwn(token: number, later: number): boolean {
    const isIssued = token > this.#start && token <= this.#last
    return isIssued && token > later - overtakenForMs * perMs
  }

  /** Undefined: not one of ours. */
  issuedAt(token: number, nowMs: number): number | undefined {
    if (token <= this.#start || token > this.#last) return undefined
    return Math.min(nowMs, (token - this.#first) / perMs)
  }

  #next(nowMs: number, remainder: 0 | 1): number {
    const token = Math.max(this.#last + 1, this.#at(nowMs))
    this.#last = token % 2 === remainder ? token : token + 1
    return this.#last
  }

  #at(nowMs: number): number {
    return this.#first + Math.floor(nowMs * perMs)
  }
}
