import type { Random } from '@rouse/testkit'

export interface Step {
  /** The pause before the fault. */
  readonly gapSeconds: number
  readonly fault: string
  readonly seconds: number
}

export interface ScheduleOptions {
  readonly faults: readonly string[]
  /** True: each fault once, in the given order. False: random faults without end. */
  readonly eachOnce: boolean
  readonly gapSeconds: Range
  readonly faultSeconds: Range
}

export type Range = readonly [min: number, max: number]

/** The seed alone decides which fault comes when; nothing that happens in the run changes the schedule. */
export function* schedule(options: ScheduleOptions, random: Random): Generator<Step> {
  const { faults, eachOnce, gapSeconds, faultSeconds } = options
  if (faults.length === 0) return
  for (let i = 0; !eachOnce || i < faults.length; i += 1) {
    const fault = eachOnce ? (faults[i] ?? '') : random.pick(faults)
    yield { gapSeconds: within(gapSeconds, random), fault, seconds: within(faultSeconds, random) }
  }
}

function within([min, max]: Range, random: Random): number {
  return min + random.next() * (max - min)
}
