/** Makes any clock monotonic. */
export class SteadyTime {
  #last = Number.NEGATIVE_INFINITY
  #shift = 0

  read(nowMs: number): number {
    if (nowMs + this.#shift < this.#last) this.#shift = this.#last - nowMs
    this.#last = nowMs + this.#shift
    return this.#last
  }

  /** Converts a time of this clock to the outer clock. */
  outside(atMs: number): number {
    return atMs - this.#shift
  }
}
