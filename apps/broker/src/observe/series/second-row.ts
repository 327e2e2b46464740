import type { Pair } from './series-store.ts'

const seconds = 3_600

/** The counts of an hour, by second. */
export class SecondRow {
  readonly #counts = new Uint32Array(2 * seconds)
  /** Seconds before this one are not known. */
  readonly #from: number
  /** Counts after this second are those of an hour ago. */
  #last: number

  constructor(fromMs: number) {
    this.#from = Math.floor(fromMs / 1_000)
    this.#last = this.#from
  }

  get bytes(): number {
    return this.#counts.byteLength
  }

  add(nowMs: number, pushed: number, completed: number): void {
    // If the clock was set back, the counts are added to the last second.
    const second = Math.max(this.#last, Math.floor(nowMs / 1_000))
    const passed = Math.min(second - this.#last, seconds)
    for (let ago = 0; ago < passed; ago += 1) this.#set(second - ago, 0, 0)
    this.#last = second
    const at = 2 * (second % seconds)
    this.#set(second, (this.#counts[at] ?? 0) + pushed, (this.#counts[at + 1] ?? 0) + completed)
  }

  /** Undefined: not known. */
  at(second: number): Pair | undefined {
    if (second < this.#from || second <= this.#last - seconds) return undefined
    if (second > this.#last) return [0, 0]
    const at = 2 * (second % seconds)
    return [this.#counts[at] ?? 0, this.#counts[at + 1] ?? 0]
  }

  #set(second: number, pushed: number, completed: number): void {
    const at = 2 * (second % seconds)
    this.#counts[at] = pushed
    this.#counts[at + 1] = completed
  }
}
