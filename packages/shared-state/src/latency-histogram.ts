/** Durations in fixed buckets, so that histograms can be added up. */
export interface LatencyStats {
  readonly count: number
  readonly sumMs: number
  readonly maxMs: number
  /** Cumulative counts: durations of at most `leMs`; null: all. */
  readonly buckets: readonly { readonly leMs: number | null; readonly count: number }[]
}

const bounds = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000] as const

export class LatencyHistogram {
  /** One more than there are bounds, for durations above all of them. */
  readonly #counts: number[] = Array.from({ length: bounds.length + 1 }, () => 0)
  #count = 0
  #sumMs = 0
  #maxMs = 0

  record(ms: number): void {
    const index = bounds.findIndex((bound) => ms <= bound)
    const slot = index < 0 ? bounds.length : index
    this.#counts[slot] = (this.#counts[slot] as number) + 1
    this.#count += 1
    this.#sumMs += ms
    this.#maxMs = Math.max(this.#maxMs, ms)
  }

  stats(): LatencyStats {
    let sum = 0
    const buckets = this.#counts.map((count, slot) => {
      sum += count
      return { leMs: bounds[slot] ?? null, count: sum }
    })
    return { count: this.#count, sumMs: round(this.#sumMs), maxMs: round(this.#maxMs), buckets }
  }
}

function round(ms: number): number {
  return Math.round(ms * 100) / 100
}
