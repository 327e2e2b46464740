import { int8Array } from './binary-array.ts'
import { callRows, type Executor } from './executor.ts'
import { readWoken, type Woken, wokenColumns } from './woken.ts'

export interface DeadLetter {
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
}

export interface DeadLetterFilter {
  readonly queue?: string | undefined
  readonly group?: string | undefined
  readonly limit?: number | undefined
  readonly offset?: number | undefined
}

const listCall = {
  name: 'dead_letters',
  columns:
    'id, message_id, transaction_id, trace_id, partition_id, partition, queue, consumer_group, seq, ' +
    'payload, headers, error_message, error_code, attempts, created_at, failed_at, total',
  parameters: ['text', 'text', 'integer', 'integer'],
}

/** Newest first, with the count of all that match. */
export async function deadLetters(
  executor: Executor,
  { queue, group, limit = 100, offset = 0 }: DeadLetterFilter = {},
): Promise<{ readonly letters: DeadLetter[]; readonly total: number }> {
  const rows = await callRows(executor, listCall, [queue ?? null, group ?? null, limit, offset])
  return { letters: rows.map(readDeadLetter), total: Number(rows[0]?.[16] ?? 0) }
}

function readDeadLetter(row: readonly unknown[]): DeadLetter {
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
    createdAt: row[14] as Date,
    failedAt: row[15] as Date,
  }
}

export interface RedriveRequest {
  readonly queue: string
  readonly group?: string | undefined
  readonly errorCode?: string | undefined
  readonly ids?: readonly string[] | undefined
  readonly limit?: number | undefined
  /** Only say what would be moved. */
  readonly dryRun?: boolean | undefined
}

const redriveCall = {
  name: 'redrive',
  columns: wokenColumns,
  parameters: ['text', 'text', 'text', 'bigint[]', 'integer', 'boolean'],
}

/** Delivers dead letters again, each to its own group and place, attempts counted anew. */
export async function redrive(executor: Executor, request: RedriveRequest): Promise<Woken[]> {
  const rows = await callRows(executor, redriveCall, [
    request.queue,
    request.group ?? null,
    request.errorCode ?? null,
    request.ids === undefined ? null : int8Array(request.ids),
    request.limit ?? 1000,
    request.dryRun ?? false,
  ])
  return rows.map((row) => readWoken(row))
}
