// When a schedule ticks. Patterns have five fields, or six with seconds in front, or are a nickname such as @daily.
// When clocks go forward, a tick inside the missing hour comes at the end of it; when they go back, a tick inside the
// repeated hour comes once, unless the pattern says every hour: then both hours have it.
import { Cron } from 'croner'
import type { CatchUp } from '../statements/schedules.ts'

export interface CronPattern {
  readonly cron: string
  readonly timeZone: string
}

/** Ticks that are no older than this were not missed, only a little late: a node died, or the database was away. */
export const lateTickMsMax = 5_000
/** Of `all`, in one transaction; the rest follow at once. */
export const ticksMax = 500

/** Throws what is wrong with it, in words. */
export function checkPattern({ cron, timeZone }: CronPattern): void {
  // Croner takes a date for a pattern that ticks once.
  if (/^\s*\d{4}-/.test(cron)) throw new TypeError('must be a cron pattern, not a date')
  try {
    void new Cron(cron, { timezone: timeZone, mode: '5-or-6-parts' })
  } catch (error) {
    throw new TypeError((error as Error).message.replace(/^CronPattern: /, ''), { cause: error })
  }
}

/** Undefined: never again. */
export function nextTick({ cron, timeZone }: CronPattern, after: Date): Date | undefined {
  const next = new Cron(cron, { timezone: timeZone, mode: '5-or-6-parts' }).nextRun(after)
  if (next === null || !isEveryHour(cron)) return next ?? undefined
  const before = offsetMinutes(timeZone, after)
  const behind = offsetMinutes(timeZone, next)
  if (behind >= before) return next
  // Clocks go back in between. Croner steps over the repeated hour; by the new offset alone it is an hour like others.
  const repeated = new Cron(cron, { utcOffset: behind, mode: '5-or-6-parts' }).nextRun(after)
  return repeated !== null && offsetMinutes(timeZone, repeated) === behind ? repeated : next
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

function offsetMinutes(timeZone: string, at: Date): number {
  const format = new Intl.DateTimeFormat('en', { timeZone, timeZoneName: 'longOffset' })
  const name = format.formatToParts(at).find(({ type }) => type === 'timeZoneName')?.value ?? ''
  const [, sign = '+', hours = '0', minutes = '0'] = /GMT([+-])(\d\d):(\d\d)/.exec(name) ?? []
  return (sign === '-' ? -1 : 1) * (Number(hours) * 60 + Number(minutes))
}
