import type pg from 'pg'
import { callStatement } from '../call.ts'

/**
 * Finds one of these queues whose dedupe window is shorter than `windowMs`. A queue that does not exist has
 * no stored messages, and does not count.
 */
export async function forgetfulQueue(
  pool: pg.Pool,
  queues: readonly string[],
  windowMs: number,
): Promise<string | undefined> {
  const [row] = await callStatement(
    pool,
    'select name from rouse.queues where name = any ($1) and dedup_window_ms < $2 limit 1',
    [queues, windowMs],
  )
  return row?.[0] as string | undefined
}
