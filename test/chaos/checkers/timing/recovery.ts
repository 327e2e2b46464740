// How the cluster recovered from each fault, as clients saw it.
import type { History } from '../../history/history.ts'
import type { FaultRecord } from '../../history/records.ts'
import { medianMs, windowMedians } from '../../history/slow-windows.ts'

/** How long after a fault its effects are measured. */
const aftermathMs = 10_000
/** How long before a fault pushes are measured, for comparison with those after its start. */
const calmMs = 5_000
/** Pushes after the start of a fault are measured in slices of this length. */
const sliceMs = 1_000
/** A machine on which pushes take longer than this without a fault is too busy to check time limits. */
export const calmPushMsMax = 250

export interface FaultRecovery {
  readonly fault: FaultRecord
  /**
   * From the end of the fault to the first push, and the first pop, that was sent afterwards and succeeded.
   */
  readonly pushMs: number | undefined
  readonly popMs: number | undefined
  /**
   * The longest time without a successful push, from the start of the fault until well after its end. Pops do
   * not count, because an empty pop needs no database.
   */
  readonly longestGapMs: number
  /**
   * How late messages came back whose first response was lost in the fault. In each lane the first such
   * message counts, from the time at which a lease that was taken at the start of the fault expires. The
   * value is the maximum of all lanes; undefined if no response was lost.
   */
  readonly leasesBackMs: number | undefined
  /** The median time of a successful push before the fault. */
  readonly calmPushMs: number | undefined
  /** The 90th percentile of the times of successful pushes before the fault. */
  readonly calmMostPushMs: number | undefined
  /**
   * The median push time in the worst one-second slice after the start of the fault, divided by the median
   * push time before the fault.
   */
  readonly slowdown: number | undefined
  /** The number of one-second slices in which pushes took more than twice as long as before. */
  readonly slowSlices: number
}

export function recoveries(history: History): FaultRecovery[] {
  const made = history.faults.filter(({ skipped }) => skipped === undefined)
  if (made.length === 0) return []
  const answers = [...history.okAnswers()].sort((a, b) => a.end - b.end)
  const ends = Float64Array.from(answers, ({ end }) => end)
  const lastPush = answers.findLast(({ kind }) => kind === 'push')?.end ?? 0
  const astray = [...deliveriesAfterLostOnes(history)]
  return made.map((fault) => {
    // The effects of the next fault do not count.
    const next = made.find(({ start }) => start > fault.start)?.start ?? Number.POSITIVE_INFINITY
    const until = Math.max(fault.end, Math.min(fault.end + aftermathMs, next))
    const near = answers.slice(lowerBound(ends, fault.start - calmMs), lowerBound(ends, until))
    const pushed = near.filter(({ kind, end }) => kind === 'push' && end >= fault.start)
    return {
      fault,
      pushMs: firstAfter(near, 'push', fault.end),
      popMs: firstAfter(near, 'pop', fault.end),
      longestGapMs: longestGap(
        pushed.map(({ end }) => end),
        fault.start,
        lastPush,
        until,
      ),
      leasesBackMs: leasesBack(astray, fault),
      calmMostPushMs: ninthTenth(
        near.filter(({ kind, end }) => kind === 'push' && end < fault.start),
      ),
      ...slowness(near, fault, until),
    }
  })
}

interface AfterLost {
  readonly lane: string
  readonly pushed: number
  readonly came: number
  readonly leaseMs: number
}

/**
 * Messages whose first recorded delivery is a later attempt: the response with the first attempt was lost.
 */
function* deliveriesAfterLostOnes(history: History): Iterable<AfterLost> {
  for (const { deliveries, pushes } of history.messages()) {
    const [first] = deliveries
    const [push] = pushes
    if (first === undefined || push === undefined || first.attempt === 1) continue
    const { queue, group, partition, end, leaseMs } = first
    yield { lane: `${queue}/${group}/${partition}`, pushed: push.start, came: end, leaseMs }
  }
}

function leasesBack(astray: readonly AfterLost[], { start, end }: FaultRecord): number | undefined {
  const firstOfLane = new Map<string, number>()
  for (const { lane, pushed, came, leaseMs } of astray) {
    if (pushed > start || came < start || came > end + aftermathMs) continue
    const late = came - start - leaseMs
    firstOfLane.set(lane, Math.min(firstOfLane.get(lane) ?? late, late))
  }
  return firstOfLane.size === 0 ? undefined : Math.max(...firstOfLane.values())
}

interface Answer {
  readonly kind: 'push' | 'pop'
  readonly start: number
  readonly end: number
}

function firstAfter(answers: readonly Answer[], kind: Answer['kind'], healed: number) {
  const first = answers.find((answer) => answer.kind === kind && answer.start >= healed)
  return first === undefined ? undefined : first.end - healed
}

/**
 * The longest time without a successful push. The time from the last one to the end of the measurement
 * counts, too, but not beyond the last push of the run.
 */
function longestGap(
  ends: readonly number[],
  from: number,
  lastEver: number,
  until: number,
): number {
  let longest = 0
  let previous = from
  for (const end of [...ends, Math.min(lastEver, until)]) {
    longest = Math.max(longest, end - previous)
    previous = Math.max(previous, end)
  }
  return longest
}

function slowness(answers: readonly Answer[], { start }: FaultRecord, until: number) {
  const pushes = answers.filter(({ kind }) => kind === 'push')
  const calmPushMs = medianMs(pushes.filter((push) => push.end < start))
  if (calmPushMs === undefined || calmPushMs === 0) {
    return { calmPushMs, slowdown: undefined, slowSlices: 0 }
  }
  const slices = { from: start, until, windowMs: sliceMs }
  const ratios = windowMedians(pushes, slices).map((median) => (median ?? 0) / calmPushMs)
  return {
    calmPushMs,
    slowdown: Math.max(...ratios),
    slowSlices: ratios.filter((ratio) => ratio > 2).length,
  }
}

function ninthTenth(answers: readonly Answer[]): number | undefined {
  const times = answers.map(({ start, end }) => end - start).sort((a, b) => a - b)
  return times[Math.floor(times.length * 0.9)]
}

function lowerBound(sorted: Float64Array, value: number): number {
  let low = 0
  let high = sorted.length
  while (low < high) {
    const middle = (low + high) >> 1
    if ((sorted[middle] ?? 0) < value) low = middle + 1
    else high = middle
  }
  return low
}
