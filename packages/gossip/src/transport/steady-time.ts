/** Turns whatever clock is handed in into one that never goes back. */
export class SteadyTime {
  #last = Number.NEGATIVE_INFINITY
  #shift = 0

  read(nowMs: number): number {
    if (nowMs + this.#shift < this.#last) this.#shift = this.#last - nowMs
    this.#last = nowMs + this.#shift
    return this.#last
  }

  /** What the clock outside shows at a moment of this one. */
  outside(atMs: number): number {
    return atMs - this.#shift
  }
}
