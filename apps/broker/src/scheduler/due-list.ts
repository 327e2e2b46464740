/** More than the whole milliseconds of the few seconds that are kept; what finds no place is found by a later look. */
export const deadlinesMax = 10_000

interface Deadline<Kind> {
  readonly dueAt: number
  readonly kinds: Set<Kind>
}

/** Times at which something of a kind falls due, the earliest first. A time that is told twice is kept once. */
export class DeadlineList<Kind> {
  readonly #max: number
  /** Sorted, not a heap: it is the latest that gives way, and most times are told in order. */
  readonly #deadlines: Deadline<Kind>[] = []

  constructor(max = deadlinesMax) {
    this.#max = max
  }

  get size(): number {
    return this.#deadlines.length
  }

  /** Infinity when there is none. */
  firstDueAt(): number {
    return this.#deadlines[0]?.dueAt ?? Number.POSITIVE_INFINITY
  }

  /** When it is full the latest gives way. False: that is this one. */
  add(dueAt: number, kind: Kind): boolean {
    const at = this.#firstNotBefore(dueAt)
    const next = this.#deadlines[at]
    if (next?.dueAt === dueAt) {
      next.kinds.add(kind)
      return true
    }
    if (at >= this.#max) return false
    this.#deadlines.splice(at, 0, { dueAt, kinds: new Set([kind]) })
    if (this.#deadlines.length > this.#max) this.#deadlines.pop()
    return true
  }

  addAll(others: DeadlineList<Kind>): void {
    for (const { dueAt, kinds } of others.#deadlines) {
      for (const kind of kinds) this.add(dueAt, kind)
    }
  }

  /** Takes out what is due, and answers the kinds of it. */
  takeDue(now: number): Set<Kind> {
    const due = new Set<Kind>()
    while (this.firstDueAt() <= now) {
      for (const kind of this.#deadlines.shift()?.kinds ?? []) due.add(kind)
    }
    return due
  }

  /** Drops all up to a time, because somebody knows better. */
  forgetUntil(until: number): void {
    this.takeDue(until)
  }

  /** The index of the first that is due then or later, by halving. */
  #firstNotBefore(dueAt: number): number {
    let [low, high] = [0, this.#deadlines.length]
    while (low < high) {
      const middle = (low + high) >> 1
      if ((this.#deadlines[middle]?.dueAt ?? dueAt) < dueAt) low = middle + 1
      else high = middle
    }
    return low
  }
}
