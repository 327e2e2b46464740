// Divides a time into spans, each with one cause. Causes claim times one after the other, and what is claimed stays.

export interface Span<Cause> {
  readonly fromMs: number
  readonly toMs: number
  readonly cause: Cause
}

export class Spans<Cause> {
  #free: { readonly fromMs: number; readonly toMs: number }[]
  readonly #claimed: Span<Cause>[] = []

  constructor(fromMs: number, toMs: number) {
    this.#free = toMs > fromMs ? [{ fromMs, toMs }] : []
  }

  /** Claims what is free between these times. */
  claim(fromMs: number, toMs: number, cause: Cause): void {
    this.#free = this.#free.flatMap((free) => {
      const from = Math.max(fromMs, free.fromMs)
      const to = Math.min(toMs, free.toMs)
      if (to <= from) return [free]
      this.#claimed.push({ fromMs: from, toMs: to, cause })
      const [before, after] = [
        { fromMs: free.fromMs, toMs: from },
        { fromMs: to, toMs: free.toMs },
      ]
      return [before, after].filter((one) => one.toMs > one.fromMs)
    })
  }

  /** Claims everything that is free. */
  claimRest(cause: Cause): void {
    this.claim(Number.NEGATIVE_INFINITY, Number.POSITIVE_INFINITY, cause)
  }

  /** How much is free between these times. */
  freeMs(fromMs: number, toMs: number): number {
    return this.#free.reduce((sum, free) => {
      return sum + Math.max(0, Math.min(toMs, free.toMs) - Math.max(fromMs, free.fromMs))
    }, 0)
  }

  /** In the order of time. */
  all(): Span<Cause>[] {
    return this.#claimed.toSorted((a, b) => a.fromMs - b.fromMs)
  }
}
