const perMs = 16
/** Keeps tokens below 2⁵³ for the lifetime of any process. */
const leastStart = 2 ** 50
const startRange = 6 * 2 ** 50
const overtakenForMs = 10_000

/** Tokens that encode their age. A peer returns them. Only a recent token that this process issued proves
 * anything, so recorded traffic never does. It also proves that the peer talks to us: of two processes
 * that run for a month, one pair in 100,000 issues overlapping numbers. */
export class TokenClock {
  readonly #first: number
  readonly #start: number
  #last: number

  constructor(random: () => number, nowMs: number) {
    // The start is random, so tokens of another process are not mistaken for ours.
    this.#start = leastStart + Math.floor(random() * startRange)
    this.#first = this.#start - Math.floor(nowMs * perMs)
    this.#last = this.#start
  }

  /** For a member at its current address. Never the same twice. */
  issue(nowMs: number): number {
    return this.#next(nowMs, 0)
  }

  /** For a hello to an unproven address. */
  issueForHello(nowMs: number): number {
    return this.#next(nowMs, 1)
  }

  isForHello(token: number): boolean {
    return token % 2 === 1
  }

  /** Whether a token is ours, and not older than another of ours by more than the delay of reordered
   * datagrams. Tokens come back in the order we sent them. That leaves only a few seconds in which a
   * foreign token could be mistaken for ours. */
  isOwn(token: number, later: number): boolean {
    const isIssued = token > this.#start && token <= this.#last
    return isIssued && token > later - overtakenForMs * perMs
  }

  /** Undefined if it is not ours. */
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
