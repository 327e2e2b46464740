/** A monotonic clock, independent of the time of day. */
export function steadyNowMs(): number {
  return performance.now()
}
