/** Names are chosen again after this time. */
const chosenForMs = 60_000
/** A chosen queue stays while it is among the busiest `max` times this number, so that names seldom change. */
const staysWithin = 2

/** Chooses at most `max` queues. These are the first queues that are used, and later the busiest queues. */
export class BusiestQueues {
  readonly #max: number
  readonly #onLeft: (queue: string) => void
  readonly #chosen = new Set<string>()
  /** What each queue did since the last choice. */
  #recent = new Map<string, number>()
  #chosenAtMs: number | undefined

  constructor(max: number, onLeft: (queue: string) => void) {
    this.#max = max
    this.#onLeft = onLeft
  }

  /** A queue did something. Returns whether it is among the chosen ones. */
  note(queue: string, weight: number, nowMs: number): boolean {
    this.#chosenAtMs ??= nowMs
    if (nowMs - this.#chosenAtMs >= chosenForMs) this.#choose(nowMs)
    this.#recent.set(queue, (this.#recent.get(queue) ?? 0) + weight)
    if (this.#chosen.size < this.#max) this.#chosen.add(queue)
    return this.#chosen.has(queue)
  }

  #choose(nowMs: number): void {
    this.#chosenAtMs = nowMs
    const busiest = [...this.#recent].sort(([, a], [, b]) => b - a).map(([queue]) => queue)
    this.#recent = new Map()
    const stay = new Set(busiest.slice(0, this.#max * staysWithin))
    for (const queue of busiest.slice(0, this.#max)) {
      if (this.#chosen.has(queue)) continue
      if (this.#chosen.size >= this.#max) {
        const leaving = [...this.#chosen].find((one) => !stay.has(one))
        if (leaving === undefined) return
        this.#chosen.delete(leaving)
        this.#onLeft(leaving)
      }
      this.#chosen.add(queue)
    }
  }
}
