// Pushes and acknowledges in a user's own PostgreSQL transaction. No node is asked: the messages are delivered
// after COMMIT, and never after ROLLBACK.
import { type PushOptions, pushItemText } from '../push/push-item.ts'
import { rowsOf, type SqlExecutor } from './executor.ts'
import { errorOfSql } from './sql-error.ts'
import { ackInStatement, enqueueManyStatement, type Statement } from './statements.ts'

/** A message that is stored when the transaction commits. */
export interface PushedIn {
  readonly id: string
}

/** A message and its queue. */
export interface EnqueueEntry<Payload = unknown> extends PushOptions {
  readonly queue: string
  readonly payload: Payload
}

/** Stores a message. */
export async function pushIn(
  executor: SqlExecutor,
  queue: string,
  payload: unknown,
  options: PushOptions = {},
): Promise<PushedIn> {
  const [stored] = await enqueueMany(executor, [{ ...options, queue, payload }])
  return stored as PushedIn
}

/** Stores up to 10,000 messages of any queues with one call of `rouse.enqueue_many`, in this order. */
export async function enqueueMany(
  executor: SqlExecutor,
  messages: readonly EnqueueEntry[],
): Promise<PushedIn[]> {
  if (messages.length === 0) return []
  const items = messages.map(({ queue, payload, ...options }) =>
    pushItemText(queue, payload, options),
  )
  const rows = await run(executor, enqueueManyStatement(items))
  return rows.map(({ id }) => ({ id: String(id) }))
}

/**
 * Acknowledges a delivered message, or several, with `rouse.ack_in`. In a handler use `context.ackIn`, so that
 * the worker knows. Rejects with `lease_lost` if a lease is lost; in that case roll back.
 */
export async function ackIn(
  executor: SqlExecutor,
  messages: Acknowledgeable | readonly Acknowledgeable[],
): Promise<void> {
  const list = Array.isArray(messages) ? messages : [messages]
  // The ids are sorted, so that two transactions with messages of the same leases do not deadlock. Servers of
  // release 0.1.0 send the receipt under the name `leaseId`.
  const ids = list.map(({ receipt, leaseId }) => receipt ?? leaseId ?? '')
  ids.sort((a, b) => (a < b ? -1 : 1))
  if (ids.length > 0) await run(executor, ackInStatement(ids))
}

/** The fields of a delivered message that name its delivery. */
export interface Acknowledgeable {
  readonly receipt?: string | null
  readonly leaseId?: string | null
}

async function run(
  executor: SqlExecutor,
  { text, values }: Statement,
): Promise<readonly Record<string, unknown>[]> {
  try {
    return rowsOf(await executor.query(text, values))
  } catch (error) {
    throw errorOfSql(error)
  }
}
