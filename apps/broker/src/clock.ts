/** The two clocks of a process: one for dates that people see, one for measuring that never steps. */
export interface Clock {
  /** Milliseconds since 1970. */
  readonly wallMs: () => number
  /** Milliseconds since some moment in the past. */
  readonly nowMs: () => number
}

export const systemClock: Clock = {
  wallMs: Date.now,
  nowMs: performance.now.bind(performance),
}
