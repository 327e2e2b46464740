import type { PopOptions } from '@rouse/protocol'
import type pg from 'pg'
import { callStatement } from '../call.ts'

/** All effective options of a queue; undefined if there is no such queue. */
export async function queueOptions(
  pool: pg.Pool,
  queue: string,
): Promise<Readonly<Record<string, unknown>> | undefined> {
  const [row] = await callStatement(
    pool,
    'select rouse.options_in_force(q) from rouse.queues q where q.name = $1',
    [queue],
  )
  return row?.[0] as Record<string, unknown> | undefined
}

/**
 * Whether payloads of a queue are encrypted. If the queue does not exist, the defaults in the database
 * decide.
 */
export async function isEncrypted(pool: pg.Pool, queue: string): Promise<boolean> {
  const [row] = await callStatement(
    pool,
    'select coalesce((select q.encryption from rouse.queues q where q.name = $1), rouse.encrypts_by_default())',
    [queue],
  )
  return row?.[0] === true
}

export interface QueuePlace {
  readonly version: number
  readonly namespace: string | null
  readonly task: string | null
}

/** A queue's current version, namespace and task; undefined if there is no such queue. */
export async function queuePlace(pool: pg.Pool, queue: string): Promise<QueuePlace | undefined> {
  const [row] = await callStatement(
    pool,
    'select version::float8, namespace, task from rouse.queues where name = $1',
    [queue],
  )
  if (row === undefined) return undefined
  const [version, namespace, task] = row as [number, string | null, string | null]
  return { version, namespace, task }
}

/** Names of all queues that have a consumer group of this name. */
export async function queuesWithGroup(pool: pg.Pool, group: string): Promise<string[]> {
  const rows = await callStatement(
    pool,
    `select q.name from rouse.groups g join rouse.queues q on q.id = g.queue_id where g.name = $1 order by q.name`,
    [group],
  )
  return rows.map(([name]) => name as string)
}

/** Creates a consumer group unless it exists. False: there is no such queue. */
export async function subscribe(
  pool: pg.Pool,
  target: {
    readonly queue: string
    readonly group: string
    readonly from: PopOptions['subscription']
  },
): Promise<boolean> {
  const rows = await callStatement(
    pool,
    `select rouse.subscribe(q.id, $2, case when $4 then rouse.now() else $3::timestamptz end)
     from rouse.queues q where q.name = $1`,
    [
      target.queue,
      target.group,
      typeof target.from === 'object' ? new Date(target.from.fromMs) : null,
      target.from === 'new',
    ],
  )
  return rows.length > 0
}
