// How many connections a pool may open, given what the server has refused.
//
//   full      as many as configured.
//   limited   the server refused another connection: the pool keeps its connections, and callers wait for one
//             of them. After a pause a test connection is opened. If the server accepts it, the limit
//             doubles, up to full. If the server refuses it, or refuses the pool a connection after a
//             successful test, the pause doubles.

const pauseMsMin = 1_000
const pauseMsMax = 30_000

export class ConnectionLimit {
  readonly max: number
  readonly #random: () => number
  #current: number
  #baseMs = pauseMsMin
  /** A test succeeded, and no connection was refused since. */
  #hasGrown = false

  constructor(max: number, random: () => number) {
    this.max = max
    this.#current = max
    this.#random = random
  }

  get current(): number {
    return this.#current
  }

  get isLimited(): boolean {
    return this.#current < this.max
  }

  /** The time until the next test. Jitter prevents nodes that share a server from testing in step. */
  get pauseMs(): number {
    return this.#baseMs * (0.5 + this.#random())
  }

  /** The server refused a connection beyond the `connected` ones. A burst of refusals counts as one. */
  refused(connected: number): void {
    if (this.#hasGrown) this.#waitLonger()
    this.#current = Math.max(1, Math.min(connected, this.#current, this.max - 1))
  }

  /** Corrects a limit that is too low: a refusal may arrive before a concurrent attempt succeeds. */
  connected(count: number): void {
    if (count > this.#current) this.#current = Math.min(count, this.max)
  }

  testFailed(): void {
    this.#waitLonger()
  }

  testSucceeded(): void {
    this.#current = Math.min(this.#current * 2, this.max)
    this.#hasGrown = this.isLimited
    if (!this.isLimited) this.#baseMs = pauseMsMin
  }

  #waitLonger(): void {
    this.#baseMs = Math.min(this.#baseMs * 2, pauseMsMax)
    this.#hasGrown = false
  }
}
