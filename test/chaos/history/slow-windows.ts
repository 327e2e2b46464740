// How long requests took, window by window. The median of a window is compared: a single slow request is no slow window, and one
// that took long is counted in every window that it was under way in, so that standing still does not go unseen.

export interface Timed {
  readonly start: number
  readonly end: number
}

export interface Windows {
  readonly from: number
  readonly until: number
  readonly windowMs: number
}

/** Undefined: nothing was under way. */
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

/** In a row. */
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
