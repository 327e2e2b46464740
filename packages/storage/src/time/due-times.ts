import type pg from 'pg'
import { callStatement } from '../call.ts'

/** Times are milliseconds since 1970 by the database clock. */
export interface DueTimes {
  readonly nowMs: number
  /** The lists are complete only up to this time. */
  readonly completeUntilMs: number
  readonly reap: readonly number[]
  readonly promote: readonly number[]
  readonly cron: readonly number[]
  readonly retain: readonly number[]
  readonly hasWindows: boolean
}

/** Everything due within the horizon, including overdue items. */
export async function dueTimes(pool: pg.Pool, horizonMs: number): Promise<DueTimes> {
  const [row = []] = await callStatement(
    pool,
    `select now_ms, complete_until, reap, promote, cron, retain, has_windows
     from rouse.due_times($1)`,
    [horizonMs],
  )
  const [nowMs, completeUntilMs, reap, promote, cron, retain, hasWindows] = row
  return {
    nowMs: nowMs as number,
    completeUntilMs: completeUntilMs as number,
    reap: reap as number[],
    promote: promote as number[],
    cron: cron as number[],
    retain: retain as number[],
    hasWindows: hasWindows === true,
  }
}
