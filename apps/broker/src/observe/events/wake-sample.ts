export const wakeSteps = [
  'push',
  'free',
  'timer',
  'notify',
  'hint_sent',
  'hint_received',
  'hint_lost',
  'grant',
  'found',
  'empty',
] as const
export type WakeStep = (typeof wakeSteps)[number]

/** A map of the cluster cannot show more, and a busy node has thousands. */
const perSecondMax = 50

/** Chooses which wake-ups are reported: a limited number of each step in each second. */
export class WakeSample {
  #second = 0
  readonly #counts = new Map<WakeStep, number>()
  readonly #skipped = new Map<WakeStep, number>()

  /** How many of this step were left out since the last one; undefined: leave out this one, too. */
  take(step: WakeStep, nowMs: number): number | undefined {
    const second = Math.floor(nowMs / 1_000)
    if (second !== this.#second) this.#counts.clear()
    this.#second = second
    const count = this.#counts.get(step) ?? 0
    const skipped = this.#skipped.get(step) ?? 0
    if (count >= perSecondMax) {
      this.#skipped.set(step, skipped + 1)
      return undefined
    }
    this.#counts.set(step, count + 1)
    this.#skipped.set(step, 0)
    return skipped
  }
}
