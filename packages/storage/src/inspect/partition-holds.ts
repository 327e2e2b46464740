import type pg from 'pg'
import { callStatement } from '../call.ts'

/** A time in which messages before another one kept their partition busy. Times are ms since 1970. */
export interface PartitionHold {
  readonly consumerGroup: string
  readonly seq: number
  readonly attempt: number
  readonly holder: string | null
  readonly fromMs: number
  /** Null: it still does. */
  readonly toMs: number | null
  /** `leased`, or how the attempt ended. */
  readonly outcome: string
  readonly errorCode: string | null
  /** When a failed message is tried again, if it waits for that. */
  readonly retryAtMs: number | null
}

const ms = (time: string): string => `(extract(epoch from ${time}) * 1000)::float8`

/** How many earlier messages are searched for holds. */
const seqsBack = 1_000
const holdsMax = 200

/**
 * What the database knows about the messages before this one in its partition, since a time: failed attempts, and the
 * lease that holds the partition now.
 */
export async function partitionHolds(
  pool: pg.Pool,
  { partitionId, seq, sinceMs }: { partitionId: string; seq: number; sinceMs: number },
): Promise<PartitionHold[]> {
  const rows = await callStatement(
    pool,
    `(select g.name, a.seq::float8, a.attempt, a.holder, ${ms('a.delivered_at')}, ${ms('a.ended_at')}, a.outcome, a.error_code,
        (select ${ms('r.due_at')} from rouse.redeliveries r
         where r.partition_id = a.partition_id and r.group_id = a.group_id and r.seq = a.seq)
      from rouse.attempts a join rouse.groups g on g.id = a.group_id
      where a.partition_id = $1 and a.seq between $2::bigint - ${seqsBack} and $2::bigint - 1
        and a.ended_at >= to_timestamp($3::float8 / 1000)
      order by a.seq desc, a.ended_at desc limit ${holdsMax})
     union all
     select g.name, s.from_seq::float8, s.attempt, s.holder, ${ms('s.delivered_at')}, null, 'leased', null, null
     from rouse.lanes l join rouse.groups g on g.id = l.group_id
     join rouse.leases s on s.id = l.lease_id and s.partition_id = l.partition_id
     where l.partition_id = $1 and s.from_seq <> $2::bigint`,
    [partitionId, seq, sinceMs],
  )
  return rows.map((row) => ({
    consumerGroup: row[0] as string,
    seq: row[1] as number,
    attempt: row[2] as number,
    holder: row[3] as string | null,
    fromMs: (row[4] ?? row[5]) as number,
    toMs: row[5] as number | null,
    outcome: row[6] as string,
    errorCode: row[7] as string | null,
    retryAtMs: row[8] as number | null,
  }))
}
