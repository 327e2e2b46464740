// Computes when a schedule ticks. A pattern has five fields, or six if it begins with seconds, or it is a
// nickname such as @daily. When clocks go forward, a tick inside the missing hour fires at the end of that
// hour. When clocks go back, a tick inside the repeated hour fires once. A pattern for every hour fires in
// both hours.

import type { CatchUp } from '@rouse/storage'
import { Cron } from 'croner'

export interface CronPattern {
  readonly cron: string
  readonly timeZone: string
}

/**
 * A tick of up to this age counts as late, not as missed, and always fires. A node or the database may have
 * been down for a moment.
 */
export const lateTickMsMax = 5_000
/** The maximum number of ticks that one transaction fires. The next transaction follows at once. */
export const ticksMax = 500

/** Throws with the reason if the pattern is invalid. */
export function checkPattern(cron: string): void {
  // Croner would accept a date, as a pattern that ticks once.
  if (/^\s*\d{4}-/.test(cron)) throw new TypeError('must be a cron pattern, not a date')
  try {
    void new Cron(cron, { mode: '5-or-6-parts' })
  } catch (error) {
    throw new TypeError((error as Error).message.replace(/^CronPattern: /, ''), { cause: error })
  }
}

/**
 * The first tick after a time, or undefined if there is none. Croner is called with fixed UTC offsets only:
 * with a time zone it may return a time in the past after clocks have gone back.
 */
export function nextTick(pattern: CronPattern, after: Date): Date | undefined {
  const everyHour = isEveryHour(pattern.cron)
  let from = after
  for (;;) {
    const tick = tickAfter(pattern, from, everyHour)
    if (tick === undefined || everyHour || !isRepeated(pattern.timeZone, tick)) return tick
    from = tick
  }
}

function tickAfter({ cron, timeZone }: CronPattern, from: Date, everyHour: boolean) {
  const offset = offsetMinutes(timeZone, from)
  const tick = nextAtOffset(cron, offset, from)
  if (tick === undefined) return undefined
  const newOffset = offsetMinutes(timeZone, tick)
  if (newOffset === offset) return tick
  // Clocks change before the tick. The pattern applies to the local time after the change.
  const moved = minutesLater(tick, offset - newOffset)
  if (offsetMinutes(timeZone, moved) !== newOffset) return tick // in the missing hour
  const repeated = everyHour ? nextAtOffset(cron, newOffset, from) : undefined
  const isEarlier = repeated !== undefined && repeated < moved
  return isEarlier && offsetMinutes(timeZone, repeated) === newOffset ? repeated : moved
}

function nextAtOffset(cron: string, utcOffset: number, after: Date): Date | undefined {
  return new Cron(cron, { utcOffset, mode: '5-or-6-parts' }).nextRun(after) ?? undefined
}

/** By how many minutes clocks are set back at the end of daylight saving time. */
const stepsBack = [30, 60, 120]

/** Whether the clock shows this time for the second time, because it was set back in between. */
function isRepeated(timeZone: string, at: Date): boolean {
  const offset = offsetMinutes(timeZone, at)
  return stepsBack.some(
    (step) => offsetMinutes(timeZone, minutesLater(at, -step)) - offset === step,
  )
}

export interface DueTicks {
  /** The ticks to fire now, in order. */
  readonly fire: readonly Date[]
  /**
   * The first tick after those in `fire`. It is already due if not all due ticks fit into `fire`. Undefined if
   * there is none.
   */
  readonly next: Date | undefined
}

/** Plans the ticks of a schedule that was due at `nextAt`. */
export function dueTicks(
  schedule: CronPattern & { readonly nextAt: Date; readonly catchUp: CatchUp },
  now: Date,
): DueTicks {
  const ticks: Date[] = []
  let next: Date | undefined = schedule.nextAt
  if (schedule.catchUp !== 'all') next = skipMissed(schedule, now, ticks)
  while (next !== undefined && next <= now && ticks.length < ticksMax) {
    ticks.push(next)
    next = nextTick(schedule, next)
  }
  return { fire: ticks, next }
}

/**
 * Returns the first tick that is not missed. If that tick is not due yet, the catch-up `last` adds the last
 * missed tick to `ticks`.
 */
function skipMissed(
  schedule: CronPattern & { readonly nextAt: Date; readonly catchUp: CatchUp },
  now: Date,
  ticks: Date[],
): Date | undefined {
  const since = new Date(now.getTime() - lateTickMsMax)
  if (schedule.nextAt >= since) return schedule.nextAt
  const next = nextTick(schedule, new Date(since.getTime() - 1))
  if (schedule.catchUp === 'last' && (next === undefined || next > now)) {
    ticks.push(lastTick(schedule, schedule.nextAt, since))
  }
  return next
}

/** The last tick before a time. Searches back in growing steps, at most to `from`, which is a tick. */
function lastTick(pattern: CronPattern, from: Date, before: Date): Date {
  let last = from
  for (let backMs = 60_000; ; backMs *= 4) {
    const begin = new Date(Math.max(from.getTime(), before.getTime() - backMs))
    let tick = begin > from ? nextTick(pattern, begin) : from
    if (tick !== undefined && tick < before) {
      while (tick !== undefined && tick < before) {
        last = tick
        tick = nextTick(pattern, tick)
      }
      return last
    }
    if (begin <= from) return last
  }
}

function isEveryHour(cron: string): boolean {
  const fields = cron.trim().split(/\s+/)
  return fields.at(-4) === '*' || fields[0]?.toLowerCase() === '@hourly'
}

function minutesLater(at: Date, minutes: number): Date {
  return new Date(at.getTime() + minutes * 60_000)
}

/** Bounded by the number of time zones. */
const formats = new Map<string, Intl.DateTimeFormat>()

function offsetMinutes(timeZone: string, at: Date): number {
  let format = formats.get(timeZone)
  if (format === undefined) {
    format = new Intl.DateTimeFormat('en', { timeZone, timeZoneName: 'longOffset' })
    formats.set(timeZone, format)
  }
  const [, sign = '+', hours = '0', minutes = '0'] =
    /GMT([+-])(\d\d):(\d\d)/.exec(format.format(at)) ?? []
  return (sign === '-' ? -1 : 1) * (Number(hours) * 60 + Number(minutes))
}
