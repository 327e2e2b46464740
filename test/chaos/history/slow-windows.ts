// Request times by window. Windows are compared by their median, so a single slow request does not make a
// window slow. A long request counts in every window in which it was in progress, so that a standstill is
// noticed.

export interface Timed {
  readonly start: number
  readonly end: number
}

export interface Windows {
  readonly from: number
  readonly until: number
  readonly windowMs: number
}

/** The median request time of each window; undefined if no request was in progress. */
export function windowMedians(
  timed: readonly Timed[],
  { from, until, windowMs }: Windows,
): (number | undefined)[] {
  const medians: (number | undefined)[] = []
  for (let at = from; at < until; at += windowMs) {
    medians.push(medianMs(timed.filter(({ start, end }) => end >= at && start < at + windowMs)))
  }
  return medians
}

/** The longest run of consecutive windows above the limit, in ms. */
export function longestAbove(
  medians: readonly (number | undefined)[],
  limitMs: number,
  windowMs: number,
): number {
  let longest = 0
  let current = 0
  for (const median of medians) {
    current = (median ?? 0) > limitMs ? current + windowMs : 0
    longest = Math.max(longest, current)
  }
  return longest
}

export function medianMs(timed: readonly Timed[]): number | undefined {
  const times = timed.map(({ start, end }) => end - start).sort((a, b) => a - b)
  return times[times.length >> 1]
}
