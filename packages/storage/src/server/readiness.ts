import type pg from 'pg'
import { callStatement } from '../call.ts'

export interface Readiness {
  readonly writable: boolean
  /** The latest migration of the database; 0: none. */
  readonly schemaVersion: number
}

/** A standby or a read-only database accepts no messages. */
export async function readReadiness(pool: pg.Pool, timeoutMs: number): Promise<Readiness> {
  const [row] = await callStatement(
    pool,
    `select not pg_is_in_recovery() and current_setting('transaction_read_only') = 'off',
       (select coalesce(max(version), 0) from rouse.migrations)`,
    [],
    { timeoutMs },
  )
  return { writable: row?.[0] === true, schemaVersion: Number(row?.[1]) }
}
