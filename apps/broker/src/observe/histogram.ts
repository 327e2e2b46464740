// Histograms with fixed bounds, so that those of several processes can be added up.

/** What was recorded: one count per bound, and one for values above all bounds. */
export interface HistogramCounts {
  readonly counts: number[]
  readonly sum: number
}

/** Upper bounds of durations, in milliseconds. */
export const durationBoundsMs: readonly number[] = [
  1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000, 30_000, 60_000, 120_000, 300_000,
  600_000,
]
/** Upper bounds of numbers of messages. */
export const sizeBounds: readonly number[] = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000]

/** What the histograms of a node measure. Durations are in milliseconds, sizes in messages. */
const measured = {
  /** From the creation of a message to its first delivery, by what caused the pop. */
  delivery: durationBoundsMs,
  /** From the delivery of a message to its ack, if the same worker did both. */
  processing: durationBoundsMs,
  /** Messages per SQL call, by kind of call. */
  batch: sizeBounds,
  /** Duration of SQL calls, by function. */
  sql: durationBoundsMs,
  /** The longest delay of the event loop in each second, by process. */
  eventLoop: durationBoundsMs,
} as const
export type Measured = keyof typeof measured

export class Histogram {
  readonly bounds: readonly number[]
  #counts: number[]
  #sum = 0

  constructor(bounds: readonly number[]) {
    this.bounds = bounds
    this.#counts = this.#zeros()
  }

  record(value: number, times = 1): void {
    let slot = 0
    while (slot < this.bounds.length && value > (this.bounds[slot] as number)) slot += 1
    this.#counts[slot] = (this.#counts[slot] as number) + times
    this.#sum += value * times
  }

  add({ counts, sum }: HistogramCounts): void {
    for (const [slot, count] of counts.entries()) {
      this.#counts[slot] = (this.#counts[slot] ?? 0) + count
    }
    this.#sum += sum
  }

  read(): HistogramCounts {
    return { counts: [...this.#counts], sum: this.#sum }
  }

  /** What was recorded since the last call. */
  take(): HistogramCounts {
    const taken = { counts: this.#counts, sum: this.#sum }
    this.#counts = this.#zeros()
    this.#sum = 0
    return taken
  }

  #zeros(): number[] {
    return Array.from({ length: this.bounds.length + 1 }, () => 0)
  }
}

/** Histograms by what they measure and label. */
export class Histograms {
  readonly #kinds = new Map<Measured, Map<string, Histogram>>()

  record(kind: Measured, label: string, value: number, times = 1): void {
    this.of(kind, label).record(value, times)
  }

  /** For callers that record many values at once. */
  of(kind: Measured, label: string): Histogram {
    let labels = this.#kinds.get(kind)
    if (labels === undefined) this.#kinds.set(kind, (labels = new Map()))
    let histogram = labels.get(label)
    if (histogram === undefined) {
      histogram = new Histogram(measured[kind])
      labels.set(label, histogram)
    }
    return histogram
  }

  add(taken: readonly TakenHistogram[]): void {
    for (const [kind, label, counts] of taken) this.of(kind, label).add(counts)
  }

  /** Those that recorded anything since the last call. */
  take(): TakenHistogram[] {
    const all = this.#each((histogram) => histogram.take())
    return all.filter(([, , { counts }]) => counts.some((count) => count > 0))
  }

  read(): TakenHistogram[] {
    return this.#each((histogram) => histogram.read())
  }

  #each(read: (histogram: Histogram) => HistogramCounts): TakenHistogram[] {
    return [...this.#kinds].flatMap(([kind, labels]) =>
      [...labels].map(([label, histogram]): TakenHistogram => [kind, label, read(histogram)]),
    )
  }
}

export type TakenHistogram = readonly [kind: Measured, label: string, counts: HistogramCounts]
