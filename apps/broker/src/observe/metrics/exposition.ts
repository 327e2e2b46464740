// Metrics as text, in the exposition format of Prometheus.

export type MetricType = 'counter' | 'gauge' | 'histogram'
export type Labels = Readonly<Record<string, string>>

export class Exposition {
  readonly #lines: string[] = []

  /** Begins a family. Its samples follow. */
  family(name: string, type: MetricType, help: string): Family {
    this.#lines.push(`# HELP ${name} ${help}`, `# TYPE ${name} ${type}`)
    return new Family(name, this.#lines)
  }

  text(): string {
    return `${this.#lines.join('\n')}\n`
  }
}

export class Family {
  readonly #name: string
  readonly #lines: string[]

  constructor(name: string, lines: string[]) {
    this.#name = name
    this.#lines = lines
  }

  /** Leaves out a value that is not known. */
  sample(value: number | null | undefined, labels: Labels = {}): this {
    if (value !== null && value !== undefined) this.#push('', labels, value)
    return this
  }

  samples(values: Readonly<Record<string, number>>, label: string): this {
    for (const [name, value] of Object.entries(values)) this.sample(value, { [label]: name })
    return this
  }

  /** Counts per bucket, not cumulative; the last is for values above all bounds. */
  histogram(
    bounds: readonly number[],
    counts: readonly number[],
    sum: number,
    labels: Labels,
  ): this {
    let count = 0
    for (const [i, bound] of [...bounds, '+Inf'].entries()) {
      count += counts[i] ?? 0
      this.#push('_bucket', { ...labels, le: String(bound) }, count)
    }
    this.#push('_sum', labels, sum)
    this.#push('_count', labels, count)
    return this
  }

  #push(suffix: string, labels: Labels, value: number): void {
    this.#lines.push(`${this.#name}${suffix}${written(labels)} ${value}`)
  }
}

function written(labels: Labels): string {
  const pairs = Object.entries(labels).map(([name, value]) => `${name}="${escaped(value)}"`)
  return pairs.length === 0 ? '' : `{${pairs.join(',')}}`
}

/** Queue names may contain any character. */
function escaped(value: string): string {
  return value.replaceAll('\\', '\\\\').replaceAll('\n', '\\n').replaceAll('"', '\\"')
}
