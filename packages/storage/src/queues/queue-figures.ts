import type pg from 'pg'
import { callStatement } from '../call.ts'
import { findQueues, type QueueFilter } from './stats.ts'

/** What operators see of a queue; `queue_figures.sql` defines the numbers. */
export interface QueueFigures {
  readonly queue: string
  readonly namespace: string | null
  readonly task: string | null
  readonly paused: boolean
  readonly createdAt: Date
  readonly ready: number
  readonly leased: number
  readonly retrying: number
  readonly scheduled: number
  readonly dead: number
  /** Pops whose messages are held. */
  readonly pops: number
  /** By the clock of the database. */
  readonly oldestAgeMs: number | null
  readonly heldUntil: Date | null
  readonly heldError: string | null
}

const columns = `queue, namespace, task, paused, created_at, ready::float8, leased::float8, retrying::float8,
  scheduled::float8, dead::float8, pops::float8,
  (extract(epoch from rouse.now() - oldest_at) * 1000)::float8, held_until, held_error`

/** A page of the queues that match, by name. */
export async function figuresOfMatching(
  pool: pg.Pool,
  filter: QueueFilter,
): Promise<QueueFigures[]> {
  const found = findQueues(filter)
  const rows = await callStatement(
    pool,
    `select ${columns} from rouse.queue_figures(${found.call})`,
    found.values,
  )
  return rows.map(readFigures)
}

/** Undefined: there is no such queue. */
export async function figuresOf(pool: pg.Pool, queue: string): Promise<QueueFigures | undefined> {
  const [row] = await callStatement(
    pool,
    `select ${columns} from rouse.queue_figures(array(select id from rouse.queues where name = $1))`,
    [queue],
  )
  return row === undefined ? undefined : readFigures(row)
}

function readFigures(row: readonly unknown[]): QueueFigures {
  const [oldestAgeMs, heldUntil, heldError] = row.slice(11) as [number | null, Date | null, string]
  return {
    queue: row[0] as string,
    namespace: row[1] as string | null,
    task: row[2] as string | null,
    paused: row[3] as boolean,
    createdAt: row[4] as Date,
    ready: row[5] as number,
    leased: row[6] as number,
    retrying: row[7] as number,
    scheduled: row[8] as number,
    dead: row[9] as number,
    pops: row[10] as number,
    oldestAgeMs: oldestAgeMs === null ? null : Math.max(0, Math.round(oldestAgeMs)),
    heldUntil,
    heldError,
  }
}
