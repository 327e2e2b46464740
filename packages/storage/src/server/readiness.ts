// Whether the server can be used: is it writable, migrated, and how many connections does it allow.
import type pg from 'pg'
import { callStatement } from '../call.ts'
import type { Executor } from '../executor.ts'

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

/** Resolves if the server accepts writes; rejects on a standby. */
export async function ping(executor: Executor): Promise<void> {
  const { rows } = await executor.query({
    text: 'select pg_is_in_recovery()',
    values: [],
    rowMode: 'array',
  })
  if (rows[0]?.[0] === true) throw new Error('the server is a standby')
}

/** The server's max_connections. */
export async function serverConnectionsMax(pool: pg.Pool): Promise<number> {
  const [row] = await callStatement(pool, `select current_setting('max_connections')::int`)
  return row?.[0] as number
}
