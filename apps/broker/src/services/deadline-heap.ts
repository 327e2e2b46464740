/** Far more than fall due within a horizon; what is refused here is found again by the next look. */
export const deadlinesMax = 10_000

/** Times at which something of a kind falls due, the earliest first. A time that is told twice is kept once. */
export class DeadlineHeap<Kind> {
  readonly #max: number
  /** A binary heap of distinct times. */
  #times: number[] = []
  readonly #kinds = new Map<number, Set<Kind>>()

  constructor(max = deadlinesMax) {
    this.#max = max
  }

  get size(): number {
    return this.#times.length
  }

  /** Infinity when there is none. */
  firstDueAt(): number {
    return this.#times[0] ?? Number.POSITIVE_INFINITY
  }

  /** False: it is full, and this time is not the earliest. */
  add(dueAt: number, kind: Kind): boolean {
    const known = this.#kinds.get(dueAt)
    if (known !== undefined) {
      known.add(kind)
      return true
    }
    if (this.#times.length >= this.#max && dueAt >= this.firstDueAt()) return false
    this.#kinds.set(dueAt, new Set([kind]))
    this.#times.push(dueAt)
    this.#rise(this.#times.length - 1)
    return true
  }

  /** Takes out what is due, and answers the kinds of it. */
  takeDue(now: number): Set<Kind> {
    const due = new Set<Kind>()
    while (this.firstDueAt() <= now) {
      for (const kind of this.#removeFirst()) due.add(kind)
    }
    return due
  }

  /** Drops all up to a time, because somebody knows better. */
  forgetUntil(until: number): void {
    const kept = this.#times.filter((time) => time > until).sort((a, b) => a - b)
    for (const time of this.#times) if (time <= until) this.#kinds.delete(time)
    // A sorted array is a heap.
    this.#times = kept
  }

  #removeFirst(): Set<Kind> {
    const [first = Number.NaN] = this.#times
    const last = this.#times.pop()
    if (last !== undefined && this.#times.length > 0) {
      this.#times[0] = last
      this.#sink(0)
    }
    const kinds = this.#kinds.get(first) ?? new Set<Kind>()
    this.#kinds.delete(first)
    return kinds
  }

  #rise(at: number): void {
    let child = at
    while (child > 0) {
      const parent = (child - 1) >> 1
      if (this.#at(parent) <= this.#at(child)) return
      this.#swap(parent, child)
      child = parent
    }
  }

  #sink(at: number): void {
    let parent = at
    for (;;) {
      const left = 2 * parent + 1
      if (left >= this.#times.length) return
      const right = left + 1
      const least = right < this.#times.length && this.#at(right) < this.#at(left) ? right : left
      if (this.#at(parent) <= this.#at(least)) return
      this.#swap(parent, least)
      parent = least
    }
  }

  #at(index: number): number {
    return this.#times[index] as number
  }

  #swap(a: number, b: number): void {
    const time = this.#at(a)
    this.#times[a] = this.#at(b)
    this.#times[b] = time
  }
}
