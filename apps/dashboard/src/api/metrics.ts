// Reads Prometheus text, and compares two readings of the same node: rates and percentiles of the time between them.
export interface Sample {
  readonly name: string
  readonly labels: Readonly<Record<string, string>>
  readonly value: number
}

export type Metrics = ReadonlyMap<string, readonly Sample[]>

const line = /^([a-z_]+)(?:\{(.*)\})? (\S+)$/
const label = /([a-z_]+)="((?:[^"\\]|\\.)*)"/g

/** Only metrics whose name is wanted. */
export function parseMetrics(text: string, wanted: (name: string) => boolean): Metrics {
  const found = new Map<string, Sample[]>()
  for (const row of text.split('\n')) {
    if (row === '' || row.startsWith('#')) continue
    const [, name = '', labels = '', value = ''] = line.exec(row) ?? []
    if (!wanted(name)) continue
    const sample = { name, labels: parseLabels(labels), value: Number(value) }
    const own = found.get(name)
    if (own === undefined) found.set(name, [sample])
    else own.push(sample)
  }
  return found
}

function parseLabels(text: string): Record<string, string> {
  return Object.fromEntries([...text.matchAll(label)].map(([, name, value]) => [name, value]))
}

export function total(metrics: Metrics | undefined, name: string): number {
  return (metrics?.get(name) ?? []).reduce((sum, { value }) => sum + value, 0)
}

export function valueOf(
  metrics: Metrics | undefined,
  name: string,
  labels: Readonly<Record<string, string>> = {},
): number | undefined {
  return metrics?.get(name)?.find((sample) => {
    return Object.entries(labels).every(([key, value]) => sample.labels[key] === value)
  })?.value
}

export interface Bucket {
  /** Upper bound; infinity for the last. */
  readonly le: number
  /** Cumulative. */
  readonly count: number
}

export interface Timing {
  readonly count: number
  readonly sum: number
  readonly buckets: readonly Bucket[]
}

/** A histogram, by one of its labels, added up over all others. */
export function histograms(metrics: Metrics, name: string, by: string): Map<string, Timing> {
  const found = new Map<string, { count: number; sum: number; buckets: Map<number, number> }>()
  const own = (key: string) => {
    const known = found.get(key) ?? { count: 0, sum: 0, buckets: new Map<number, number>() }
    found.set(key, known)
    return known
  }
  for (const { labels, value } of metrics.get(`${name}_bucket`) ?? []) {
    const le = labels.le === '+Inf' ? Number.POSITIVE_INFINITY : Number(labels.le)
    const { buckets } = own(labels[by] ?? '')
    buckets.set(le, (buckets.get(le) ?? 0) + value)
  }
  for (const { labels, value } of metrics.get(`${name}_sum`) ?? [])
    own(labels[by] ?? '').sum += value
  for (const { labels, value } of metrics.get(`${name}_count`) ?? [])
    own(labels[by] ?? '').count += value
  return new Map(
    [...found].map(([key, { count, sum, buckets }]) => [
      key,
      {
        count,
        sum,
        buckets: [...buckets].map(([le, n]) => ({ le, count: n })).toSorted((a, b) => a.le - b.le),
      },
    ]),
  )
}

/** What happened between two readings. */
export function between(before: Timing | undefined, after: Timing): Timing {
  if (before === undefined || before.count > after.count) return after
  const old = new Map(before.buckets.map(({ le, count }) => [le, count]))
  return {
    count: after.count - before.count,
    sum: after.sum - before.sum,
    buckets: after.buckets.map(({ le, count }) => ({ le, count: count - (old.get(le) ?? 0) })),
  }
}

export function add(timings: readonly Timing[]): Timing {
  const buckets = new Map<number, number>()
  for (const timing of timings) {
    for (const { le, count } of timing.buckets) buckets.set(le, (buckets.get(le) ?? 0) + count)
  }
  return {
    count: timings.reduce((sum, { count }) => sum + count, 0),
    sum: timings.reduce((sum, timing) => sum + timing.sum, 0),
    buckets: [...buckets].map(([le, count]) => ({ le, count })).toSorted((a, b) => a.le - b.le),
  }
}

/** Interpolated within its bucket; undefined if there is no sample. */
export function quantile(q: number, { buckets }: Timing): number | undefined {
  const all = buckets.at(-1)?.count ?? 0
  if (all === 0) return undefined
  const rank = q * all
  let lower = 0
  let below = 0
  for (const { le, count } of buckets) {
    if (count >= rank) {
      if (le === Number.POSITIVE_INFINITY) return lower
      return lower + (le - lower) * ((rank - below) / Math.max(count - below, 1))
    }
    lower = le
    below = count
  }
  return lower
}
