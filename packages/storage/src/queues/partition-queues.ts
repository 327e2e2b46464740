import type pg from 'pg'
import { callStatement } from '../call.ts'

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
