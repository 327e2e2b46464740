// The functions that users call inside their own transactions, on their own connections.
import { callRows, type Executor } from '../executor.ts'
import type { MessageOptions } from './push.ts'

export interface EnqueueRequest {
  readonly queue: string
  /** JSON text. */
  readonly payload: string
  readonly partition?: string | undefined
  readonly delayMs?: number | undefined
  readonly runAt?: Date | undefined
  readonly transactionId?: string | undefined
  readonly headers?: string | undefined
  readonly traceId?: string | undefined
  readonly priority?: number | undefined
  readonly options?: MessageOptions | undefined
}

const enqueueCall = {
  name: 'enqueue',
  columns: 'enqueue',
  parameters: [
    'text',
    'json',
    'text',
    'interval',
    'timestamptz',
    'text',
    'json',
    'text',
    'integer',
    'integer',
    'bigint[]',
    'bigint',
  ],
}

/**
 * Enqueues a message that is delivered after the caller's COMMIT, never after its ROLLBACK. Resolves to the
 * message id.
 */
export async function enqueue(executor: Executor, request: EnqueueRequest): Promise<string> {
  const rows = await callRows(executor, enqueueCall, [
    request.queue,
    request.payload,
    request.partition ?? null,
    request.delayMs === undefined ? null : `${request.delayMs} milliseconds`,
    request.runAt ?? null,
    request.transactionId ?? null,
    request.headers ?? null,
    request.traceId ?? null,
    request.priority ?? 0,
    request.options?.retryLimit ?? null,
    request.options?.retryBackoffMs ?? null,
    request.options?.ttlMs ?? null,
  ])
  return rows[0]?.[0] as string
}

const enqueueManyCall = {
  name: 'enqueue_many',
  columns: 'enqueue_many',
  parameters: ['jsonb'],
}

/** Enqueues several messages, each with the fields of an item of a push. Resolves to their ids, in order. */
export async function enqueueMany(
  executor: Executor,
  messages: readonly Readonly<Record<string, unknown>>[],
): Promise<string[]> {
  const rows = await callRows(executor, enqueueManyCall, [JSON.stringify(messages)])
  return rows.map(([id]) => id as string)
}

const ackInCall = { name: 'ack_in', columns: 'ack_in', parameters: ['uuid', 'bigint', 'bigint'] }

/** Completes messages with the caller's COMMIT; raises RS409 if the lease is lost. */
export async function ackIn(
  executor: Executor,
  leaseId: string,
  message?: { readonly partitionId: string; readonly seq: number },
): Promise<number> {
  const values = [leaseId, message?.partitionId ?? null, message?.seq ?? null]
  const rows = await callRows(executor, ackInCall, values)
  return rows[0]?.[0] as number
}
