// A sorted set of merged time spans.
export interface Span {
  readonly from: number
  readonly to: number
}

export class Windows {
  readonly #spans: Span[] = []

  constructor(spans: Iterable<Span>) {
    const sorted = [...spans].sort((a, b) => a.from - b.from)
    for (const span of sorted) {
      const last = this.#spans.at(-1)
      if (last !== undefined && span.from <= last.to) {
        this.#spans[this.#spans.length - 1] = { from: last.from, to: Math.max(last.to, span.to) }
      } else {
        this.#spans.push(span)
      }
    }
  }

  /** Whether any of the spans overlaps this one. */
  touch(from: number, to: number): boolean {
    let low = 0
    let high = this.#spans.length
    while (low < high) {
      const middle = (low + high) >> 1
      if ((this.#spans[middle]?.to ?? 0) < from) low = middle + 1
      else high = middle
    }
    const first = this.#spans[low]
    return first !== undefined && first.from <= to
  }
}
