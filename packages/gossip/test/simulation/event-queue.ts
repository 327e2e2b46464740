const children = 4

/** What happens when, in virtual time: a heap with four children to a parent, which of a hundred thousand events touches
 * few. What is due at the same moment happens in the order in which it was put in, so a run depends on its seed and on
 * nothing else. */
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
      // What is there already came first.
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

  /** Makes room from the top down to where an event with this time belongs. */
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
