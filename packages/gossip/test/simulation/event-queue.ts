const children = 4

/**
 * Events in virtual time. The queue is a heap with four children per parent, so that an insertion touches few
 * of a hundred thousand events. Events with the same time run in insertion order, so that a run depends on
 * its seed alone.
 */
export class EventQueue<Event> {
  readonly #times: number[] = []
  readonly #orders: number[] = []
  readonly #events: Event[] = []
  #order = 0

  get size(): number {
    return this.#events.length
  }

  get nextAt(): number {
    return this.#times[0] ?? Number.POSITIVE_INFINITY
  }

  push(at: number, event: Event): void {
    this.#order += 1
    let hole = this.#events.push(event) - 1
    while (hole > 0) {
      const parent = Math.floor((hole - 1) / children)
      // At equal times, the existing event stays first.
      if ((this.#times[parent] ?? 0) <= at) break
      this.#move(parent, hole)
      hole = parent
    }
    this.#put(hole, at, this.#order, event)
  }

  pop(): Event | undefined {
    const [first] = this.#events
    const event = this.#events.pop()
    const at = this.#times.pop()
    const order = this.#orders.pop()
    if (event === undefined || at === undefined || order === undefined) return undefined
    if (this.#events.length > 0) this.#put(this.#sink(at, order), at, order, event)
    return first
  }

  /** Moves earlier events towards the top, to make a place for an event with this time; returns the place. */
  #sink(at: number, order: number): number {
    let hole = 0
    for (;;) {
      const least = this.#leastChild(hole)
      if (least === undefined || !this.#isBefore(least, at, order)) return hole
      this.#move(least, hole)
      hole = least
    }
  }

  #leastChild(parent: number): number | undefined {
    const first = parent * children + 1
    const end = Math.min(first + children, this.#events.length)
    if (first >= end) return undefined
    let least = first
    for (let index = first + 1; index < end; index += 1) {
      if (this.#isBefore(index, this.#times[least] ?? 0, this.#orders[least] ?? 0)) least = index
    }
    return least
  }

  #isBefore(index: number, at: number, order: number): boolean {
    const own = this.#times[index] ?? 0
    return own < at || (own === at && (this.#orders[index] ?? 0) < order)
  }

  #move(from: number, to: number): void {
    this.#put(to, this.#times[from] ?? 0, this.#orders[from] ?? 0, this.#events[from] as Event)
  }

  #put(index: number, at: number, order: number, event: Event): void {
    this.#times[index] = at
    this.#orders[index] = order
    this.#events[index] = event
  }
}
