import type { WakeHint } from '@rouse/protocol'
import type pg from 'pg'
import { callStatement } from '../call.ts'
import { readWakeHint, wakeHintColumns } from '../wake-hint.ts'

export type CatchUp = 'none' | 'last' | 'all'

export interface ScheduleRow {
  readonly name: string
  readonly queue: string
  /** Null: its messages name none. */
  readonly partition: string | null
  readonly cron: string
  readonly timeZone: string
  /** Both are JSON text. */
  readonly payload: string
  readonly headers: string | null
  readonly catchUp: CatchUp
  readonly paused: boolean
  /** Null while paused, and when no tick is left. */
  readonly nextAt: Date | null
  readonly lastAt: Date | null
  readonly createdAt: Date
}

const columns = `name, queue, partition, cron, time_zone, payload, headers, catch_up, paused,
  next_at, last_at, created_at`

export async function listSchedules(
  pool: pg.Pool,
  page: { readonly after: string | undefined; readonly limit: number },
): Promise<ScheduleRow[]> {
  const rows = await callStatement(
    pool,
    `select ${columns} from rouse.schedules where $1::text is null or name > $1 order by name limit $2`,
    [page.after ?? null, page.limit],
  )
  return rows.map(readSchedule)
}

/** Undefined: there is no such schedule. */
export async function findSchedule(pool: pg.Pool, name: string): Promise<ScheduleRow | undefined> {
  const sql = `select ${columns} from rouse.schedules where name = $1`
  const [row] = await callStatement(pool, sql, [name])
  return row === undefined ? undefined : readSchedule(row)
}

/** Creates the schedule, or replaces the one of that name. */
export async function putSchedule(
  pool: pg.Pool,
  row: Omit<ScheduleRow, 'lastAt' | 'createdAt'>,
): Promise<ScheduleRow> {
  const rows = await callStatement(
    pool,
    `insert into rouse.schedules (name, queue, partition, cron, time_zone, payload, headers, catch_up, paused, next_at, created_at)
     values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, rouse.now())
     on conflict (name) do update set
       queue = excluded.queue, partition = excluded.partition, cron = excluded.cron,
       time_zone = excluded.time_zone, payload = excluded.payload, headers = excluded.headers,
       catch_up = excluded.catch_up, paused = excluded.paused, next_at = excluded.next_at
     returning ${columns}`,
    [
      row.name,
      row.queue,
      row.partition,
      row.cron,
      row.timeZone,
      row.payload,
      row.headers,
      row.catchUp,
      row.paused,
      row.nextAt,
    ],
  )
  return readSchedule(rows[0] as unknown[])
}

/** Resolves to false if the schedule did not exist. */
export async function deleteSchedule(pool: pg.Pool, name: string): Promise<boolean> {
  const sql = 'delete from rouse.schedules where name = $1 returning name'
  return (await callStatement(pool, sql, [name])).length > 0
}

export async function databaseNow(pool: pg.Pool): Promise<Date> {
  const [row] = await callStatement(pool, 'select rouse.now()')
  return row?.[0] as Date
}

export interface DueSchedule {
  readonly id: string
  readonly name: string
  readonly cron: string
  readonly timeZone: string
  readonly catchUp: CatchUp
  readonly nextAt: Date
  readonly now: Date
  readonly queue: string
  /** The stored payload, if the queue or the schedule is encrypted. */
  readonly toSeal: string | null
}

/** Leaves out schedules of the queues in `without`. */
export async function dueSchedules(
  pool: pg.Pool,
  limit: number,
  without: readonly string[],
): Promise<DueSchedule[]> {
  const rows = await callStatement(
    pool,
    `select id, name, cron, time_zone, catch_up, next_at, now, queue, to_seal
     from rouse.due_schedules($1, $2)`,
    [limit, without],
  )
  return rows.map(([id, name, cron, timeZone, catchUp, nextAt, now, queue, toSeal]) => ({
    id: id as string,
    name: name as string,
    cron: cron as string,
    timeZone: timeZone as string,
    catchUp: catchUp as CatchUp,
    nextAt: nextAt as Date,
    now: now as Date,
    queue: queue as string,
    toSeal: toSeal as string | null,
  }))
}

export interface Firing {
  readonly id: string
  /**
   * The `next_at` that was read. If another node was faster, the stored value has changed, and nothing is
   * fired.
   */
  readonly seen: Date
  readonly messageIds: readonly string[]
  readonly ticks: readonly Date[]
  readonly nextAt: Date | null
  readonly sealed: SealedFiring | undefined
}

export interface SealedFiring {
  /** The stored payload that was read, and its replacement. */
  readonly seen: string
  readonly stored: string
  /** One per tick. */
  readonly payloads: readonly string[]
}

export async function fireSchedule(pool: pg.Pool, firing: Firing): Promise<WakeHint[]> {
  const rows = await callStatement(
    pool,
    `select ${wakeHintColumns} from rouse.fire_schedule($1, $2, $3, $4, $5, $6, $7, $8)`,
    [
      firing.id,
      firing.seen,
      firing.messageIds,
      firing.ticks,
      firing.nextAt,
      firing.sealed?.seen,
      firing.sealed?.payloads,
      firing.sealed?.stored,
    ],
  )
  return rows.map((row) => readWakeHint(row))
}

function readSchedule(row: readonly unknown[]): ScheduleRow {
  return {
    name: row[0] as string,
    queue: row[1] as string,
    partition: row[2] as string | null,
    cron: row[3] as string,
    timeZone: row[4] as string,
    payload: row[5] as string,
    headers: row[6] as string | null,
    catchUp: row[7] as CatchUp,
    paused: row[8] as boolean,
    nextAt: row[9] as Date | null,
    lastAt: row[10] as Date | null,
    createdAt: row[11] as Date,
  }
}
