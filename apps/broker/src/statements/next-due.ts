import type pg from 'pg'
import { callStatement } from './call.ts'

export interface NextDue {
  /** Milliseconds until the next lease runs out; 0 or less: now. Null: no lease is out. */
  readonly reapInMs: number | null
  /** The same for what is scheduled, blocked, to be redelivered, or freed by ack_in. */
  readonly promoteInMs: number | null
}

export async function nextDue(pool: pg.Pool): Promise<NextDue> {
  const [row] = await callStatement(pool, 'select reap_in_ms, promote_in_ms from rouse.next_due()')
  return { reapInMs: row?.[0] as number | null, promoteInMs: row?.[1] as number | null }
}
