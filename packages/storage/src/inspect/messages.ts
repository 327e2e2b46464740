import type pg from 'pg'
import { callStatement } from '../call.ts'
import type { FailedAttemptRow } from './dead-letters.ts'

export interface StoredMessage {
  /** Null until the message is in the log. */
  readonly partitionId: string | null
  readonly seq: number | null
  readonly partition: string | null
  readonly id: string
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
  readonly limit: number
  /** Only messages created from this time, and before that time. */
  readonly from?: Date | undefined
  readonly before?: Date | undefined
}

const fields =
  'partition_id, seq::float8, partition, message_id, created_at, transaction_id, trace_id, payload, headers'

/** A page of the log, and the position of the next page. */
export async function listMessages(
  pool: pg.Pool,
  { queue, partition, group, status, limit, from, before }: MessageFilter,
  after: Place,
): Promise<{ readonly messages: StoredMessage[]; readonly next: Place | undefined }> {
  const rows = await callStatement(
    pool,
    `select ${fields}, status from rouse.list_messages_v2($1, $2, $3, $4, $5, $6, $7, 1000, $8, $9)`,
    [queue, partition, group, status, after.partitionId, after.seq, limit, from, before],
  )
  const end = rows.pop()?.[0] as string | null
  const messages = rows.map((row) => ({ ...readMessage(row), status: row[9] as string }))
  if (end === null) return { messages, next: undefined }
  const last = messages.at(-1)
  const seq = last?.partitionId === end ? last.seq : end === after.partitionId ? after.seq : 0
  return { messages, next: { partitionId: end, seq: String(seq) } }
}

/** Scheduled messages that are not in the log yet, in the order of scheduling. */
export async function listScheduled(
  pool: pg.Pool,
  { queue, partition, limit }: MessageFilter,
  after: string,
): Promise<{ readonly messages: StoredMessage[]; readonly next: string | undefined }> {
  const rows = await callStatement(
    pool,
    `select id, rouse.shown_partition(partition), message_id, created_at, transaction_id, trace_id, payload, headers, due_at
     from rouse.scheduled where queue = $1 and ($2::text is null or partition = $2) and id > $3 order by id limit $4`,
    [queue, partition, after, limit],
  )
  const messages = rows.map((row) => ({
    ...readMessage([null, null, ...row.slice(1)]),
    status: 'scheduled',
    dueAt: row[8] as Date,
  }))
  return { messages, next: rows.length < limit ? undefined : (rows.at(-1)?.[0] as string) }
}

/** Messages that were cancelled while they were scheduled, by id. */
export async function listCancelled(
  pool: pg.Pool,
  { queue, partition, limit }: MessageFilter,
  after: string,
): Promise<{ readonly messages: StoredMessage[]; readonly next: string | undefined }> {
  const rows = await callStatement(
    pool,
    `select id, rouse.shown_partition(partition), id, created_at, transaction_id, trace_id, payload, headers, due_at
     from rouse.cancelled where queue = $1 and ($2::text is null or partition = $2) and id > $3 order by id limit $4`,
    [queue, partition, after === '0' ? nilUuid : after, limit],
  )
  const messages = rows.map((row) => ({
    ...readMessage([null, null, ...row.slice(1)]),
    status: 'cancelled',
    dueAt: row[8] as Date,
  }))
  return { messages, next: rows.length < limit ? undefined : (rows.at(-1)?.[0] as string) }
}

const nilUuid = '00000000-0000-0000-0000-000000000000'

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
    createdAt: row[4] as Date,
    transactionId: row[5] as string | null,
    traceId: row[6] as string | null,
    payload: row[7] as string,
    headers: row[8] as string | null,
  }
}
