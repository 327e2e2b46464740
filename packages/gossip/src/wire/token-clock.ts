const perMs = 16
/** Keeps tokens below 2⁵³ for the lifetime of any process. */
const leastStart = 2 ** 50
const startRange = 6 * 2 ** 50
const overtakenForMs = 10_000

/** Issues tokens that encode their age; peers return them. Only a recent token that this process issued
 * proves anything, so recorded traffic proves nothing. A returned token also shows that a datagram is for
 * us, because each process starts at a random number. Of all pairs of processes that run for a month, one in
 * 100,000 issues overlapping numbers. */
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

  /** A token for a member at its current address. Each number is issued once. */
  issue(nowMs: number): number {
    return this.#next(nowMs, 0)
  }

  /** A token for a hello to an unproven address. */
  issueForHello(nowMs: number): number {
    return this.#next(nowMs, 1)
  }

  isForHello(token: number): boolean {
    return token % 2 === 1
  }

  /** Whether a token is ours and at most `overtakenForMs` older than `later`, a token that came back before.
   * Tokens come back in the order we sent them, except that datagrams may overtake each other for that long.
   * This leaves only a few seconds in which the token of another process could be mistaken for ours. */
  isOwn(token: number, later: number): boolean {
    const isIssued = token > this.#start && token <= this.#last
    return isIssued && token > later - overtakenForMs * perMs
  }

  /** Undefined if the token is not ours. */
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
