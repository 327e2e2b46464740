// The ratio of two series of alternating rounds, and how certain it is.

export interface Round {
  /** Of nodes and PostgreSQL, per message. */
  readonly cpuMicros: number
  readonly perSecond: number
}

/** Of CPU per message, round by round: neighbours in time see the same machine. */
export function ratioOf(
  ours: readonly Round[],
  theirs: readonly Round[],
): { readonly ratio: number; readonly spread: number } {
  const ratios = ours.map(({ cpuMicros }, i) => cpuMicros / (theirs[i] as Round).cpuMicros)
  return {
    ratio: median(ratios),
    spread: (quantile(ratios, 0.75) - quantile(ratios, 0.25)) / 2,
  }
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
