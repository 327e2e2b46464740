// How many connections a pool may open, by what the server has refused.
//
//   full      as many as configured.
//   limited   the server had no room for one more: as many as it gave, and whoever wants another waits for one of those.
//             After a pause a test connection is opened. If the server takes it the limit doubles, up to full; if not, or
//             if the pool is refused again, the pause doubles.

const pauseMsMin = 1_000
const pauseMsMax = 30_000

export class ConnectionLimit {
  readonly max: number
  readonly #random: () => number
  #current: number
  #baseMs = pauseMsMin
  /** By a test, and nothing was refused since. */
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

  /** Until the next test: nodes that share a server must not test in step. */
  get pauseMs(): number {
    return this.#baseMs * (0.5 + this.#random())
  }

  /** The server had no room beside these. Told once for each that it refused, so a burst counts as one failure. */
  refused(connected: number): void {
    if (this.#hasGrown) this.#waitLonger()
    this.#current = Math.max(1, Math.min(connected, this.#current, this.max - 1))
  }

  /** There are this many after all: refusals may come before the answers to those that were asked for at the same time. */
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
