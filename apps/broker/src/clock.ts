/** The two clocks of a process: wall-clock time for dates, and a monotonic clock for measuring. */
export interface Clock {
  /** Milliseconds since 1970. */
  readonly wallMs: () => number
  /** Monotonic milliseconds since an arbitrary start. */
  readonly nowMs: () => number
}

export const systemClock: Clock = {
  wallMs: Date.now,
  nowMs: performance.now.bind(performance),
}
