import type pg from 'pg'
import { callStatement } from '../call.ts'

/** What operators see of the database. */
export interface DatabaseFigures {
  /** Connections of all users, and the limit of the server. */
  readonly connections: number
  readonly connectionsMax: number
  /** Transactions since the oldest snapshot that is in use: VACUUM keeps dead rows that are newer. */
  readonly oldestXminAge: number
  readonly oldestTransactionSeconds: number
  readonly tables: readonly TableFigures[]
  /** How late the jobs of retention are, by job. */
  readonly retentionLagSeconds: Readonly<Record<string, number>>
}

export interface TableFigures {
  readonly table: string
  readonly liveRows: number
  readonly deadRows: number
  /** With indexes and TOAST. */
  readonly bytes: number
}

/** Reads statistics and sizes only, no rows of messages. */
export async function databaseFigures(
  pool: pg.Pool,
  { timeoutMs }: { readonly timeoutMs: number },
): Promise<DatabaseFigures> {
  const limits = { timeoutMs }
  const [server, tables, chores] = await Promise.all([
    callStatement(
      pool,
      `select count(*)::float8, current_setting('max_connections')::float8,
         coalesce(max(age(backend_xmin)), 0)::float8,
         coalesce(max(extract(epoch from clock_timestamp() - xact_start)), 0)::float8
       from pg_catalog.pg_stat_activity where backend_type = 'client backend'`,
      [],
      limits,
    ),
    callStatement(
      pool,
      `select relname::text, n_live_tup::float8, n_dead_tup::float8, pg_catalog.pg_total_relation_size(relid)::float8
       from pg_catalog.pg_stat_user_tables where schemaname = 'rouse' order by relname`,
      [],
      limits,
    ),
    callStatement(
      pool,
      `select name, greatest(0, extract(epoch from rouse.now() - next_at))::float8 from rouse.chores order by name`,
      [],
      limits,
    ),
  ])
  const [connections, connectionsMax, oldestXminAge, oldestTransactionSeconds] = server[0] as [
    number,
    number,
    number,
    number,
  ]
  return {
    connections,
    connectionsMax,
    oldestXminAge,
    oldestTransactionSeconds,
    tables: tables.map((row) => {
      const [table, liveRows, deadRows, bytes] = row as [string, number, number, number]
      return { table, liveRows, deadRows, bytes }
    }),
    retentionLagSeconds: Object.fromEntries(chores as [string, number][]),
  }
}
