/**
 * The maximum number of entries, more than there are milliseconds in the few seconds that the list covers. If
 * a time does not fit, the due poll finds it later.
 */
export const deadlinesMax = 10_000

interface Deadline<Kind> {
  readonly dueAt: number
  readonly kinds: Set<Kind>
}

/** The times at which something of a kind is due, earliest first, without duplicates. */
export class DeadlineList<Kind> {
  readonly #max: number
  /** A sorted array, not a heap: the latest entry is evicted, and most times arrive in order. */
  readonly #deadlines: Deadline<Kind>[] = []

  constructor(max = deadlinesMax) {
    this.#max = max
  }

  get size(): number {
    return this.#deadlines.length
  }

  /** Infinity if the list is empty. */
  firstDueAt(): number {
    return this.#deadlines[0]?.dueAt ?? Number.POSITIVE_INFINITY
  }

  /** If the list is full, evicts the entry with the latest time. Returns false if that is the new entry. */
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

  /** Removes the due entries and returns their kinds. */
  takeDue(now: number): Set<Kind> {
    const due = new Set<Kind>()
    while (this.firstDueAt() <= now) {
      for (const kind of this.#deadlines.shift()?.kinds ?? []) due.add(kind)
    }
    return due
  }

  /** Drops every entry up to a time, because newer information replaces them. */
  forgetUntil(until: number): void {
    this.takeDue(until)
  }

  /** The index of the first entry at or after a time, by binary search. */
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
