import { type SeriesValues, seriesFields } from './series-store.ts'

export type NodeSeries = SeriesValues

export interface MergedSeries extends SeriesValues {
  /** How many nodes know each step. */
  readonly nodes: number[]
}

/** Adds up the series of nodes. A step that no node knows stays null. All series have the same length. */
export function mergeSeries(series: readonly NodeSeries[]): MergedSeries {
  const [first] = series
  const length = first?.pushed.length ?? 0
  const steps = Array.from({ length }, (_, i) => i)
  const sums = seriesFields.map((field) => {
    const values = steps.map((i) => {
      const known = series.flatMap((one) => one[field][i] ?? [])
      return known.length === 0 ? null : known.reduce((sum, value) => sum + value, 0)
    })
    return [field, values] as const
  })
  return {
    ...(Object.fromEntries(sums) as unknown as SeriesValues),
    nodes: steps.map((i) => series.filter((one) => one.pushed[i] !== null).length),
  }
}
