import { pushTime, type WakeHint } from '@rouse/protocol'
import { int8Array } from '../binary-array.ts'
import { callRows, type Executor } from '../executor.ts'
import { readWakeHint, wakeHintColumns } from '../wake-hint.ts'
import type { LetterFilter } from './redrives.ts'

export interface DeadLetterRow {
  readonly id: string
  readonly messageId: string
  readonly transactionId: string | null
  readonly traceId: string | null
  readonly partitionId: string
  readonly partition: string | null
  readonly queue: string
  readonly group: string
  readonly seq: number
  readonly payload: string
  readonly headers: string | null
  readonly errorMessage: string | null
  readonly errorCode: string | null
  readonly attempts: number
  readonly createdAt: Date
  readonly failedAt: Date
  /** Every attempt that did not complete, oldest first. */
  readonly history: readonly FailedAttemptRow[]
}

export interface FailedAttemptRow {
  readonly attempt: number
  /** `completed` only with a result, or in a queue that keeps its whole history. */
  readonly outcome: 'failed' | 'expired' | 'retry' | 'dlq' | 'completed'
  readonly errorCode: string | null
  readonly errorMessage: string | null
  readonly holder: string | null
  /** Both in ms since 1970. */
  readonly deliveredAt: number | null
  readonly endedAt: number
}

/** As `LetterFilter`, for lists. */
export interface DeadLetterFilter extends Omit<LetterFilter, 'consumerGroup'> {
  readonly queue?: string | undefined
  readonly group?: string | undefined
  /** The dead letter to continue before. */
  readonly before?: string | undefined
  readonly limit?: number | undefined
  readonly offset?: number | undefined
}

const listCall = {
  name: 'dead_letters',
  columns:
    'id, message_id, transaction_id, trace_id, partition_id, partition, queue, consumer_group, seq, ' +
    'payload, headers, error_message, error_code, attempts, created_at, failed_at, history, total',
  parameters: ['text', 'jsonb', 'integer', 'integer'],
}

/**
 * Lists dead letters, newest first, with the total number that match, counted up to 10,000 beyond the page.
 */
export async function deadLetters(
  executor: Executor,
  { queue, group, limit = 100, offset = 0, ...others }: DeadLetterFilter = {},
): Promise<{ readonly letters: DeadLetterRow[]; readonly total: number }> {
  const where = JSON.stringify({ consumerGroup: group, ...others })
  const rows = await callRows(executor, listCall, [queue ?? null, where, limit, offset])
  if (rows.length === 0 && offset > 0) {
    // Past the end there is no row that has the total, so it is read from the first page.
    const [first] = await callRows(executor, listCall, [queue ?? null, where, 1, 0])
    return { letters: [], total: Number(first?.[17] ?? 0) }
  }
  return { letters: rows.map(readDeadLetter), total: Number(rows[0]?.[17] ?? 0) }
}

function readDeadLetter(row: readonly unknown[]): DeadLetterRow {
  return {
    id: row[0] as string,
    messageId: row[1] as string,
    transactionId: row[2] as string | null,
    traceId: row[3] as string | null,
    partitionId: row[4] as string,
    partition: row[5] as string | null,
    queue: row[6] as string,
    group: row[7] as string,
    seq: Number(row[8]),
    payload: row[9] as string,
    headers: row[10] as string | null,
    errorMessage: row[11] as string | null,
    errorCode: row[12] as string | null,
    attempts: row[13] as number,
    createdAt: pushTime(row[1] as string, row[4] as string, Number(row[8]), row[14] as Date),
    failedAt: row[15] as Date,
    history: row[16] as FailedAttemptRow[],
  }
}

export interface RedriveRequest {
  readonly queue: string
  readonly group?: string | undefined
  readonly errorCode?: string | undefined
  readonly ids?: readonly string[] | undefined
  readonly limit?: number | undefined
  /** Only report what would be redriven. */
  readonly dryRun?: boolean | undefined
}

const redriveCall = {
  name: 'redrive',
  columns: wakeHintColumns,
  parameters: ['text', 'text', 'text', 'bigint[]', 'integer', 'boolean'],
}

/** Delivers dead letters again, each to its own consumer group and position, with a new count of attempts. */
export async function redrive(executor: Executor, request: RedriveRequest): Promise<WakeHint[]> {
  const rows = await callRows(executor, redriveCall, [
    request.queue,
    request.group ?? null,
    request.errorCode ?? null,
    request.ids === undefined ? null : int8Array(request.ids),
    request.limit ?? 1000,
    request.dryRun ?? false,
  ])
  return rows.map((row) => readWakeHint(row))
}
