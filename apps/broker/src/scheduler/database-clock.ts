// Estimates the database's time from this machine's clock, which may differ by any amount.
//
// A query reads the database's clock. It is sent at `sentAtMs` and answered at `receivedAtMs`, both by our
// clock, so the database's clock showed the result at some moment between the two. A shorter round trip is
// more precise, so the sample with the shortest round trip is kept. The kept sample gets less precise with
// age, because clocks drift. If a new sample contradicts the kept one, one of the clocks was set. The new
// sample then replaces the kept one, whatever its round trip.

export interface ClockSample {
  readonly sentAtMs: number
  readonly receivedAtMs: number
  /** Milliseconds since 1970, truncated. */
  readonly databaseMs: number
}

/** An upper bound of how much two inaccurate clocks drift apart per millisecond. */
const driftPerMs = 0.0002

export class DatabaseClock {
  #best: ClockSample | undefined

  sample(next: ClockSample): void {
    const best = this.#best
    if (
      best === undefined ||
      contradicts(best, next) ||
      roundTripMs(next) <= roundTripMs(best) + driftMs(best, next.receivedAtMs)
    ) {
      this.#best = next
    }
  }

  /** Undefined before the first sample, like all results here. */
  roundTripMs(): number | undefined {
    return this.#best === undefined ? undefined : roundTripMs(this.#best)
  }

  /** A lower bound of the database's time. */
  earliestMs(localMs: number): number | undefined {
    return this.#best === undefined ? undefined : earliest(this.#best, localMs)
  }

  /** An upper bound of the database's time. */
  latestMs(localMs: number): number | undefined {
    return this.#best === undefined ? undefined : latest(this.#best, localMs)
  }

  /** The time by our clock at which the database's clock has certainly reached `databaseMs`. */
  toLocal(databaseMs: number): number | undefined {
    if (this.#best === undefined) return undefined
    return this.#best.receivedAtMs + (databaseMs - this.#best.databaseMs)
  }
}

function roundTripMs({ sentAtMs, receivedAtMs }: ClockSample): number {
  return receivedAtMs - sentAtMs
}

function driftMs(sample: ClockSample, localMs: number): number {
  return Math.max(0, localMs - sample.receivedAtMs) * driftPerMs
}

function earliest({ receivedAtMs, databaseMs }: ClockSample, localMs: number): number {
  return databaseMs + (localMs - receivedAtMs)
}

/** Adds 1 because `databaseMs` is truncated. */
function latest({ sentAtMs, databaseMs }: ClockSample, localMs: number): number {
  return databaseMs + 1 + (localMs - sentAtMs)
}

function contradicts(old: ClockSample, next: ClockSample): boolean {
  const slackMs = driftMs(old, next.receivedAtMs)
  return (
    latest(old, next.receivedAtMs) + slackMs < earliest(next, next.receivedAtMs) ||
    earliest(old, next.receivedAtMs) - slackMs > latest(next, next.receivedAtMs)
  )
}
