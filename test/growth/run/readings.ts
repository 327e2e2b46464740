// Reads the state of the database and of the processes while the load runs.
import { readFileSync } from 'node:fs'
import type pg from 'pg'
import { familyPids } from '../../bench/support/family-cpu.ts'
import type { GrowthCluster } from './growth-cluster.ts'
import { postgres, type TableFigures } from './judge.ts'
import { keptSeconds } from './load.ts'

/** Tables that could grow with the number of messages. The others have one row per queue or node. */
const tables = [
  'messages',
  'partitions',
  'lanes',
  'leases',
  'redeliveries',
  'dedup',
  'scheduled',
  'attempts',
  'dead_letters',
  'groups',
  'chores',
]

export async function readTables(client: pg.ClientBase): Promise<Record<string, TableFigures>> {
  const { rows } = await client.query<TableFigures & { name: string }>(
    `select relname as name, pg_table_size(relid) / 1048576.0::float8 as "tableMb", pg_indexes_size(relid) / 1048576.0::float8 as "indexMb",
       n_live_tup::float8 as live, n_dead_tup::float8 as dead
     from pg_stat_user_tables where schemaname = 'rouse' and relname = any ($1)`,
    [tables],
  )
  return Object.fromEntries(rows.map(({ name, ...figures }) => [name, figures]))
}

/**
 * How many seconds overdue the oldest row of each kind is. Rows that a group has not completed, or that a
 * lease or a retry holds, are not overdue.
 */
export async function readLag(client: pg.ClientBase): Promise<Record<string, number>> {
  const { rows } = await client.query<Record<string, number>>(
    `select
       (select max(extract(epoch from now() - m.created_at)) - $1 from rouse.partitions p
        join rouse.messages m on m.partition_id = p.id and m.seq = p.tail
        where m.seq < least((select min(l.next) from rouse.lanes l where l.partition_id = p.id), rouse.held_from(p.id, '{}')))::float8
         as messages,
       (select max(extract(epoch from now() - d.expires_at)) from rouse.dedup d)::float8 as keys,
       (select max(extract(epoch from now() - d.failed_at)) - $2 from rouse.dead_letters d)::float8 as "dead letters",
       (select max(extract(epoch from now() - a.ended_at)) - $2 from rouse.attempts a)::float8 as attempts,
       (select max(extract(epoch from now() - p.last_created_at)) - $3 from rouse.partitions p
        where p.tail = p.head and p.name like 'session-%'
          and not exists (select from rouse.dead_letters d where d.partition_id = p.id))::float8 as partitions`,
    [keptSeconds.completed, keptSeconds.letters, keptSeconds.completed + keptSeconds.idlePartition],
  )
  return Object.fromEntries(
    Object.entries(rows[0] ?? {}).map(([kind, seconds]) => [
      kind,
      Math.max(0, Number(seconds ?? 0)),
    ]),
  )
}

/** Messages that the slowest group of each queue has yet to complete. */
export async function readPending(client: pg.ClientBase): Promise<number> {
  const { rows } = await client.query<{ pending: number }>(
    `select coalesce(sum(q.pending), 0)::float8 as pending from (
       select max(g.pending) as pending from (
         select p.queue_id, l.group_id, sum(p.head - greatest(l.next, p.tail)) as pending
         from rouse.partitions p join rouse.lanes l on l.partition_id = p.id group by 1, 2) g
       group by g.queue_id) q`,
  )
  return rows[0]?.pending ?? Number.NaN
}

/**
 * Returns the memory of each process, in MB. For PostgreSQL it is only private memory: how much of the shared
 * buffers a process has touched is not growth.
 */
export function readMemory({ nodes, server }: GrowthCluster): Record<string, number> {
  const memory: Record<string, number> = {}
  for (const { name, pid } of nodes) {
    for (const [i, own] of familyPids(pid).entries()) {
      memory[`${name} ${own === pid ? 'primary' : `worker ${i}`}`] = statusMb(own, 'VmRSS')
    }
  }
  memory[postgres] = familyPids(server.pid).reduce((sum, pid) => sum + statusMb(pid, 'RssAnon'), 0)
  return memory
}

function statusMb(pid: number, field: string): number {
  try {
    const kb = new RegExp(`^${field}:\\s+(\\d+) kB`, 'm').exec(
      readFileSync(`/proc/${pid}/status`, 'utf8'),
    )?.[1]
    return Number(kb ?? 0) / 1_024
  } catch {
    return 0 // the process ended after the directory was listed
  }
}
