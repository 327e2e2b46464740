// What a process takes from its surroundings: time and randomness. Tests pass their own.
import { webcrypto } from 'node:crypto'
import type { UuidV7Options } from '@rouse/protocol'

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

/** For the ids of new messages. */
export const idSources: UuidV7Options = {
  now: Date.now,
  fillRandom: (bytes) => void webcrypto.getRandomValues(bytes),
}
