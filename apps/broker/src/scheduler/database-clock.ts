// What time it is in the database, told by a clock that is not its own and may differ by any amount.
//
// A query that was sent at `sentAtMs`, read the database's clock and was answered at `receivedAtMs` (both of our clock)
// says: that time was somewhere between the two. The shorter the round trip the better we know, so the sample with
// the shortest one counts; it ages, because clocks drift. A sample that contradicts it means that a clock was
// set: then the new one counts, whatever its round trip.

export interface ClockSample {
  readonly sentAtMs: number
  readonly receivedAtMs: number
  /** Milliseconds since 1970, cut off. */
  readonly databaseMs: number
}

/** What two clocks of bad quartz may drift apart by, per millisecond. */
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

  /** Undefined before the first sample, as all here. */
  roundTripMs(): number | undefined {
    return this.#best === undefined ? undefined : roundTripMs(this.#best)
  }

  /** It is not earlier than this there. */
  earliestMs(localMs: number): number | undefined {
    return this.#best === undefined ? undefined : earliest(this.#best, localMs)
  }

  /** It is not later than this there. */
  latestMs(localMs: number): number | undefined {
    return this.#best === undefined ? undefined : latest(this.#best, localMs)
  }

  /** From when on, by our clock, that time has surely come there. */
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

/** One more for the cut-off. */
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
