// Where consumer groups are, partition by partition.
import type { WakeHint } from '@rouse/protocol'
import type pg from 'pg'
import { callStatement } from '../call.ts'
import { callRows, type Executor } from '../executor.ts'
import { readWakeHint, wakeHintColumns } from '../wake-hint.ts'

/** A consumer group in one partition. */
export interface GroupPosition {
  readonly queue: string
  readonly partition: string | null
  readonly partitionId: string
  readonly group: string
  /** Messages not yet delivered. */
  readonly pending: number
  /** When the oldest of them was pushed. */
  readonly oldestAt: Date | null
  readonly oldestAgeMs: number
  readonly isLeased: boolean
  readonly lastSeenAt: Date
}

const positions = `select q.name, rouse.shown_partition(p.name), p.id, g.name,
    (p.head - greatest(l.next, p.tail) - case when p.options_until > greatest(l.next, p.tail)
      then rouse.excluded_count(p.id, greatest(l.next, p.tail)) else 0 end)::float8, m.created_at,
    coalesce(extract(epoch from rouse.now() - m.created_at) * 1000, 0)::float8,
    l.lease_id is not null, g.last_seen_at
  from rouse.groups g
  join rouse.queues q on q.id = g.queue_id
  join rouse.partitions p on p.queue_id = q.id
  join rouse.lanes l on l.partition_id = p.id and l.group_id = g.id
  left join rouse.messages m on m.partition_id = p.id and m.seq = greatest(l.next, p.tail) and p.head > l.next`

/** A group in the partitions of its queues, at most `limit` of them. */
export async function positionsOfGroup(
  pool: pg.Pool,
  group: string,
  limit: number,
): Promise<GroupPosition[]> {
  const sql = `${positions} where g.name = $1 order by q.name, p.name limit $2`
  return (await callStatement(pool, sql, [group, limit])).map(readPosition)
}

/** All groups where the oldest message not yet delivered is older than this, the oldest first. */
export async function laggingPositions(
  pool: pg.Pool,
  lagMs: number,
  limit: number,
): Promise<GroupPosition[]> {
  const sql = `${positions} where l.ready and m.created_at < rouse.now() - $1 * interval '1 millisecond'
    order by m.created_at limit $2`
  return (await callStatement(pool, sql, [lagMs, limit])).map(readPosition)
}

function readPosition(row: readonly unknown[]): GroupPosition {
  return {
    queue: row[0] as string,
    partition: row[1] as string | null,
    partitionId: String(row[2]),
    group: row[3] as string,
    pending: row[4] as number,
    oldestAt: row[5] as Date | null,
    oldestAgeMs: row[6] as number,
    isLeased: row[7] as boolean,
    lastSeenAt: row[8] as Date,
  }
}

/** The names of a page of groups, in the order of queue and group. */
export async function groupsAfter(
  pool: pg.Pool,
  after: { readonly queue: string; readonly group: string } | undefined,
  limit: number,
): Promise<{ readonly queue: string; readonly group: string }[]> {
  const rows = await callStatement(
    pool,
    `select q.name, g.name from rouse.groups g join rouse.queues q on q.id = g.queue_id
     where $1::text is null or (q.name, g.name) > ($1, $2::text) order by q.name, g.name limit $3`,
    [after?.queue, after?.group, limit],
  )
  return rows.map(([queue, group]) => ({ queue: queue as string, group: group as string }))
}

const seekPartitionCall = {
  name: 'seek_partition',
  columns: wakeHintColumns,
  parameters: ['text', 'text', 'text', 'timestamptz'],
}

/** Moves a consumer group in one partition to a time, or to the end. */
export async function seekPartition(
  executor: Executor,
  target: {
    readonly queue: string
    readonly group: string
    readonly partition: string
    readonly to: Date | 'end'
  },
): Promise<WakeHint[]> {
  const { queue, group, partition, to } = target
  const time = to === 'end' ? null : to
  const rows = await callRows(executor, seekPartitionCall, [queue, group, partition, time])
  return rows.map((row) => readWakeHint(row))
}
