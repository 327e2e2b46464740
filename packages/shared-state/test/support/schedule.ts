/** A seeded source of choices (mulberry32). */
export class Choices {
  #state: number

  constructor(seed: number) {
    this.#state = seed
  }

  /** Returns a number of at least 0 and less than 1. */
  fraction(): number {
    this.#state = (this.#state + 0x6d2b79f5) | 0
    let mixed = Math.imul(this.#state ^ (this.#state >>> 15), this.#state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }

  between(least: number, most: number): number {
    return least + Math.floor(this.fraction() * (most - least + 1))
  }

  chance(probability: number): boolean {
    return this.fraction() < probability
  }

  one<T>(list: readonly T[]): T {
    return list[this.between(0, list.length - 1)] as T
  }
}

/** Events ordered by time, then by creation. */
export class Schedule {
  #events: { readonly at: number; readonly run: () => void }[] = []
  now = 0

  get size(): number {
    return this.#events.length
  }

  nextAt(): number {
    return this.#events[0]?.at ?? Number.POSITIVE_INFINITY
  }

  at(at: number, run: () => void): void {
    let index = this.#events.length
    while (index > 0 && (this.#events[index - 1]?.at ?? 0) > at) index -= 1
    this.#events.splice(index, 0, { at, run })
  }

  after(delayMs: number, run: () => void): void {
    this.at(this.now + delayMs, run)
  }

  runNext(): void {
    const event = this.#events.shift()
    if (event === undefined) return
    this.now = Math.max(this.now, event.at)
    event.run()
  }
}
