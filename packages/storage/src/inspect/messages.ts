import { pushTime } from '@rouse/protocol'
import type pg from 'pg'
import { callStatement } from '../call.ts'
import type { FailedAttemptRow } from './dead-letters.ts'

export interface StoredMessage {
  /** Null until the message is in the log. */
  readonly partitionId: string | null
  readonly seq: number | null
  readonly partition: string | null
  readonly id: string
  /** The time of the push. */
  readonly createdAt: Date
  readonly transactionId: string | null
  readonly traceId: string | null
  /** Both are JSON text. */
  readonly payload: string
  readonly headers: string | null
  readonly status?: string
  readonly dueAt?: Date
}

export interface Place {
  readonly partitionId: string
  readonly seq: string
}

export interface MessageFilter {
  readonly queue: string
  readonly partition: string | undefined
  readonly group: string
  readonly status: string | undefined
  /** Only messages that are retrying or dead have an error. */
  readonly errorCode?: string | undefined
  readonly limit: number
  /** Only messages that entered the log from this time, and before that time. */
  readonly from?: Date | undefined
  readonly before?: Date | undefined
}

const fields =
  'partition_id, seq::float8, partition, message_id, created_at, transaction_id, trace_id, payload, headers'

/**
 * A page of messages: in the log, scheduled, cancelled while they were scheduled. The page is one snapshot.
 * `next` is where the next page starts; undefined at the end.
 */
export async function listMessages(
  pool: pg.Pool,
  { queue, partition, group, status, errorCode, limit, from, before }: MessageFilter,
  after: readonly string[] | undefined,
): Promise<{
  readonly messages: StoredMessage[]
  readonly next: readonly string[] | undefined
}> {
  const rows = await callStatement(
    pool,
    `select ${fields}, status, due_at, after from rouse.list_messages_v2($1, $2, $3, $4, $5, $6, $7, $8, $9)`,
    [queue, partition, group, status, errorCode, from, before, after, limit],
  )
  const next = (rows.pop()?.[11] ?? undefined) as readonly string[] | undefined
  const messages = rows.map((row) => {
    const dueAt = row[10] as Date | null
    return {
      ...readMessage(row),
      status: row[9] as string,
      ...(dueAt === null ? {} : { dueAt }),
    }
  })
  return { messages, next }
}

/** A position in the order of creation. */
export interface Moment extends Place {
  readonly micros: string
}

/** Without a moment: starts now. */
export async function followMessages(
  pool: pg.Pool,
  { queue, partition, limit }: Pick<MessageFilter, 'queue' | 'partition' | 'limit'>,
  after: Moment | undefined,
): Promise<{ readonly messages: StoredMessage[]; readonly next: Moment }> {
  const rows = await callStatement(
    pool,
    `select ${fields}, (extract(epoch from created_at) * 1000000)::bigint
     from rouse.follow_messages($1, $2, timestamptz 'epoch' + $3::bigint * interval '1 microsecond', $4, $5, $6)`,
    [queue, partition, after?.micros, after?.partitionId ?? 0, after?.seq ?? 0, limit],
  )
  const end = rows.pop()
  const last = rows.at(-1)
  const next =
    last === undefined
      ? after !== undefined && String(end?.[9]) === after.micros
        ? after
        : { micros: String(end?.[9]), partitionId: '0', seq: '0' }
      : { micros: String(last[9]), partitionId: String(last[0]), seq: String(last[1]) }
  return { messages: rows.map(readMessage), next }
}

export interface MessageInGroup {
  readonly consumerGroup: string
  readonly status: string
  readonly attempts: number
  /** Times are ms since 1970. */
  readonly leaseExpiresAt: number | null
  readonly holder: string | null
  readonly deliveredAt: number | null
  readonly nextTryAt: number | null
  readonly errorCode: string | null
  readonly errorMessage: string | null
  /** Both are JSON text; null if there is none. */
  readonly result: string | null
  readonly progress: string | null
  /** When the result was stored, and the progress. */
  readonly completedAt: number | null
  readonly progressAt: number | null
  readonly history: readonly FailedAttemptRow[]
}

export interface FoundMessage extends StoredMessage {
  readonly queue: string
  readonly groups: readonly MessageInGroup[]
}

export async function findMessage(
  pool: pg.Pool,
  partitionId: string,
  transactionId: string,
): Promise<FoundMessage | undefined> {
  const [row] = await callStatement(
    pool,
    `select $1::bigint, seq::float8, partition, message_id, created_at, transaction_id, trace_id, payload, headers,
       queue, due_at, groups
     from rouse.find_message($1, $2)`,
    [partitionId, transactionId],
  )
  if (row === undefined) return undefined
  const dueAt = row[10] as Date | null
  return {
    ...readMessage(row),
    queue: row[9] as string,
    groups: row[11] as MessageInGroup[],
    ...(dueAt === null ? {} : { dueAt }),
  }
}

export function readMessage(row: readonly unknown[]): StoredMessage {
  return {
    partitionId: row[0] as string | null,
    seq: row[1] as number | null,
    partition: row[2] as string | null,
    id: row[3] as string,
    createdAt: pushTime(
      row[3] as string,
      row[0] as string | null,
      row[1] as number | null,
      row[4] as Date,
    ),
    transactionId: row[5] as string | null,
    traceId: row[6] as string | null,
    payload: row[7] as string,
    headers: row[8] as string | null,
  }
}
