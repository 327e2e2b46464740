// Checks results against limits and prints them. A bench that exceeds a limit exits with 1.

export interface Limit {
  readonly what: string
  readonly value: number
  readonly max: number
}

export class Verdict {
  readonly #missed: string[] = []

  check(limits: readonly Limit[]): void {
    for (const { what, value, max } of limits) {
      if (!(value <= max)) this.#missed.push(`${what}: ${value} is more than ${max}`)
    }
  }

  /** Prints the exceeded limits and returns the exit code. */
  report(out: (line: string) => void): number {
    for (const line of this.#missed) out(`missed: ${line}`)
    return this.#missed.length === 0 ? 0 : 1
  }
}

export function percentile(sorted: readonly number[], p: number): number {
  const value = sorted[Math.floor((sorted.length - 1) * p)] ?? Number.NaN
  return Math.round(value * 10) / 10
}

export function percentiles(sorted: readonly number[]): string {
  const [p50, p99, max] = [0.5, 0.99, 1].map((p) => percentile(sorted, p).toFixed(1))
  return `p50 ${p50} ms, p99 ${p99} ms, max ${max} ms`
}
