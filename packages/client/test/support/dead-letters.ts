import type { Cluster } from './cluster.ts'

/** Reads the dead letters of a queue from the table. */
export async function deadLetters(
  { database }: Cluster,
  queue: string,
): Promise<Record<string, unknown>[]> {
  const { rows } = await database.pool.query(
    `select d.payload, d.error_message, d.error_code
     from rouse.dead_letters d join rouse.queues q on q.id = d.queue_id where q.name = $1`,
    [queue],
  )
  return rows as Record<string, unknown>[]
}
