import type { TemplateContent } from '@rouse/testkit'
import type pg from 'pg'

/** One message in each of many queues: `q00001`, `q00002`, … */
export function manyQueues(count: number): TemplateContent {
  return { name: `${count} queues`, create: (pool) => createQueues(pool, count) }
}

async function createQueues(pool: pg.Pool, count: number): Promise<void> {
  await pool.query(
    `select rouse.enqueue('q' || to_char(n, 'FM00000'), '1') from generate_series(1, $1::integer) n`,
    [count],
  )
  for (let left = 1; left > 0; ) {
    // A step does not wait for locks, for example of autovacuum.
    await pool.query('select from rouse.promote_scheduled(1000)').catch(() => {})
    const { rows } = await pool.query('select count(*)::integer as left from rouse.scheduled')
    left = rows[0].left
  }
}
