// A database that was restored from a dump elsewhere is a copy. Its schedules and redrives do not run until it
// is adopted.
import type pg from 'pg'
import { callStatement } from '../call.ts'

/** The database that a copy was made of. */
export interface Original {
  readonly database: string
  /** Null if no node of the original was allowed to read it. */
  readonly systemIdentifier: string | null
}

export interface CopyState {
  readonly copyOf: Original | undefined
  /** Null if this role may not read it. Then a copy of the same name is not recognized. */
  readonly systemIdentifier: string | null
  /** The schedules and redrives that run in a database that is not a copy. */
  readonly schedules: readonly string[]
  readonly redrives: number
}

export async function readCopyState(pool: pg.Pool): Promise<CopyState> {
  const [row] = await callStatement(
    pool,
    `select rouse.copied_from(), rouse.system_identifier()::text,
       array(select name from rouse.schedules where not paused order by name),
       (select count(*) from rouse.redrives where state = 'running')::float8`,
  )
  return {
    copyOf: (row?.[0] as Original | null) ?? undefined,
    systemIdentifier: row?.[1] as string | null,
    schedules: row?.[2] as string[],
    redrives: row?.[3] as number,
  }
}

export interface AdoptedCopy {
  readonly clusterId: string
}

/** Undefined if the database is not a copy. */
export async function adoptCopy(pool: pg.Pool): Promise<AdoptedCopy | undefined> {
  const [row] = await callStatement(pool, 'select rouse.adopt_copy()::text')
  const clusterId = (row?.[0] as string | null) ?? undefined
  return clusterId === undefined ? undefined : { clusterId }
}
