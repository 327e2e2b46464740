// Small lookups of queues that nodes need beside the functions of the API.
import type pg from 'pg'
import { callStatement } from '../call.ts'

export async function encryptedQueues(pool: pg.Pool): Promise<string[]> {
  const rows = await callStatement(pool, 'select name from rouse.queues where encryption')
  return rows.map(([name]) => name as string)
}

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

/** The names of the queues of these partitions, by partition id. Deleted partitions are left out. */
export async function queuesOfPartitions(
  pool: pg.Pool,
  partitionIds: readonly string[],
): Promise<Map<string, string>> {
  const rows = await callStatement(
    pool,
    `select p.id::text, q.name from rouse.partitions p join rouse.queues q on q.id = p.queue_id
     where p.id = any ($1::bigint[])`,
    [partitionIds],
  )
  return new Map(rows as [string, string][])
}
