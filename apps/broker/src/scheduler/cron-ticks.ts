// When a schedule ticks. Patterns have five fields, or six with seconds in front, or are a nickname such as @daily.
// When clocks go forward, a tick inside the missing hour comes at the end of it; when they go back, a tick inside the
// repeated hour comes once, unless the pattern says every hour: then both hours have it.

import type { CatchUp } from '@rouse/storage'
import { Cron } from 'croner'

export interface CronPattern {
  readonly cron: string
  readonly timeZone: string
}

/** Ticks that are no older than this were not missed, only a little late: a node died, or the database was away. */
export const lateTickMsMax = 5_000
/** Of `all`, in one transaction; the rest follow at once. */
export const ticksMax = 500

/** Throws what is wrong with it, in words. */
export function checkPattern(cron: string): void {
  // Croner takes a date for a pattern that ticks once.
  if (/^\s*\d{4}-/.test(cron)) throw new TypeError('must be a cron pattern, not a date')
  try {
    void new Cron(cron, { mode: '5-or-6-parts' })
  } catch (error) {
    throw new TypeError((error as Error).message.replace(/^CronPattern: /, ''), { cause: error })
  }
}

/**
 * The first tick after a time; undefined: never again. Croner is asked by fixed offsets from UTC only: by a time zone
 * it may answer a time that is past, after clocks have gone back.
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
  // Clocks change in between: what the pattern means is the time on the clock, not the distance.
  const moved = minutesLater(tick, offset - newOffset)
  if (offsetMinutes(timeZone, moved) !== newOffset) return tick // in the hour that is missing
  const repeated = everyHour ? nextAtOffset(cron, newOffset, from) : undefined
  const isEarlier = repeated !== undefined && repeated < moved
  return isEarlier && offsetMinutes(timeZone, repeated) === newOffset ? repeated : moved
}

function nextAtOffset(cron: string, utcOffset: number, after: Date): Date | undefined {
  return new Cron(cron, { utcOffset, mode: '5-or-6-parts' }).nextRun(after) ?? undefined
}

/** By how many minutes clocks are ever put back. */
const stepsBack = [30, 60, 120]

/** Whether the clock showed the same time a little earlier. */
function isRepeated(timeZone: string, at: Date): boolean {
  const offset = offsetMinutes(timeZone, at)
  return stepsBack.some(
    (step) => offsetMinutes(timeZone, minutesLater(at, -step)) - offset === step,
  )
}

export interface DueTicks {
  /** To be fired now, in order. */
  readonly fire: readonly Date[]
  /** When the schedule is due again; not after `now` where more ticks are left. Undefined: never. */
  readonly next: Date | undefined
}

/** What a schedule that was due at `nextAt` does at `now`. */
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

/** The first tick that is not too old. Where there is none up to now, `last` fires the last one that was missed. */
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

/** The last tick before a time, by looking back ever further: a tick at `from` is known. */
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

/** As many as there are time zones. */
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
