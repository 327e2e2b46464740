/** Rises evenly, whatever happens to the time of day. */
export function steadyNowMs(): number {
  return performance.now()
}
