import type { WaitGroup } from '@rouse/protocol'
import type pg from 'pg'
import { callStatement } from '../call.ts'

/** The positions of the groups that have messages to pop, in one query for all of them. */
export async function groupsWithWork(
  pool: pg.Pool,
  groups: readonly WaitGroup[],
): Promise<number[]> {
  if (groups.length === 0) return []
  const queues = groups.map(({ source }) => ('queue' in source ? source.queue : null))
  const partitions = groups.map(
    ({ source }) => ('queue' in source ? source.partition : null) ?? null,
  )
  const namespaces = groups.map(
    ({ source }) => ('queue' in source ? null : source.namespace) ?? null,
  )
  const tasks = groups.map(({ source }) => ('queue' in source ? null : source.task) ?? null)
  const names = groups.map(({ group }) => group)
  const rows = await callStatement(
    pool,
    'select n from rouse.groups_with_work($1::text[], $2::text[], $3::text[], $4::text[], $5::text[])',
    [queues, partitions, namespaces, tasks, names],
  )
  return rows.map(([n]) => (n as number) - 1)
}
