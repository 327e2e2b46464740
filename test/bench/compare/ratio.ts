// The ratio of two series of alternating rounds, and the spread of that ratio.

export interface Round {
  /** The CPU time that the nodes and PostgreSQL use per message. */
  readonly cpuMicros: number
  /** The part of `cpuMicros` that PostgreSQL uses. */
  readonly postgresMicros: number
  readonly perSecond: number
}

/**
 * Compares CPU per message round by round, because rounds that are close in time run under the same
 * conditions. The spread is that of the median: in about 95 of 100 repetitions the median lies within it
 * (1.57 times the distance of the quartiles, divided by the root of the number of rounds). Single rounds
 * spread several times as far.
 */
export function ratioOf(
  ours: readonly Pick<Round, 'cpuMicros'>[],
  theirs: readonly Pick<Round, 'cpuMicros'>[],
): { readonly ratio: number; readonly spread: number } {
  const ratios = ours.map(({ cpuMicros }, i) => cpuMicros / (theirs[i]?.cpuMicros ?? Number.NaN))
  const quartiles = quantile(ratios, 0.75) - quantile(ratios, 0.25)
  return { ratio: median(ratios), spread: (1.57 * quartiles) / Math.sqrt(ratios.length) }
}

export function median(values: readonly number[]): number {
  return quantile(values, 0.5)
}

/** Linear between neighbours. */
function quantile(values: readonly number[], q: number): number {
  const sorted = [...values].sort((one, other) => one - other)
  const at = (sorted.length - 1) * q
  const [below, above] = [sorted[Math.floor(at)] as number, sorted[Math.ceil(at)] as number]
  return below + (above - below) * (at - Math.floor(at))
}
