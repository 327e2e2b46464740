import type pg from 'pg'
import { callStatement } from '../call.ts'
import { findQueues, type QueueFilter } from './stats.ts'

/** What operators see of a queue; `queue_figures.sql` defines the numbers. */
export interface QueueFigures {
  readonly queue: string
  readonly namespace: string | null
  readonly task: string | null
  /** All effective options, as JSON text. */
  readonly options: string
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

const figures = `f.queue, f.namespace, f.task, f.paused, f.created_at, f.ready::float8, f.leased::float8, f.retrying::float8,
     f.scheduled::float8, f.dead::float8, f.pops::float8,
     (extract(epoch from rouse.now() - f.oldest_at) * 1000)::float8, f.held_until, f.held_error`

/** `ids`: an SQL expression for the ids of the queues. */
const figuresOfIds = (ids: string): string =>
  `select ${figures}, rouse.options_in_force(q)::text
   from rouse.queue_figures(${ids}) f join rouse.queues q on q.name = f.queue order by q.name`

const figuresOfAll = `select ${figures}, case when k.id is null then rouse.options_in_force(q)::text end, q.id::text, q.version::text
   from rouse.queue_figures(array(select id from rouse.queues)) f join rouse.queues q on q.name = f.queue
   left join unnest($1::integer[], $2::bigint[]) k(id, version) on k.id = q.id and k.version = q.version
   order by q.name`

/** A page of the queues that match, by name. */
export async function figuresOfMatching(
  pool: pg.Pool,
  filter: QueueFilter,
): Promise<QueueFigures[]> {
  const found = findQueues(filter)
  const rows = await callStatement(pool, figuresOfIds(found.call), found.values)
  return rows.map(readFigures)
}

/**
 * Returns a function that reads all queues, by name. Building the options of a queue costs more than counting
 * its messages, so they are read again only when the version of the queue has changed.
 */
export function createFiguresReader(pool: pg.Pool): () => Promise<QueueFigures[]> {
  let known = new Map<string, KnownOptions>()
  return async () => {
    const before = known
    const rows = await callStatement(pool, figuresOfAll, [
      [...before.values()].map(({ id }) => id),
      [...before.values()].map(({ version }) => version),
    ])
    const now = new Map<string, KnownOptions>()
    const figures = rows.map((row) => {
      const [id, version] = row.slice(15, 17) as [string, string]
      const options = (row[14] ?? before.get(id)?.options) as string
      now.set(id, { id, version, options })
      return readFigures([...row.slice(0, 14), options])
    })
    known = now
    return figures
  }
}

interface KnownOptions {
  readonly id: string
  readonly version: string
  readonly options: string
}

/** Undefined: there is no such queue. */
export async function figuresOf(pool: pg.Pool, queue: string): Promise<QueueFigures | undefined> {
  const [row] = await callStatement(
    pool,
    figuresOfIds('array(select id from rouse.queues where name = $1)'),
    [queue],
  )
  return row === undefined ? undefined : readFigures(row)
}

function readFigures(row: readonly unknown[]): QueueFigures {
  const [oldestAgeMs, heldUntil, heldError] = row.slice(11, 14) as [
    number | null,
    Date | null,
    string,
  ]
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
    options: row[14] as string,
  }
}
