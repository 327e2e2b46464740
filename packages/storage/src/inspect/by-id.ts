// One message by its id: shown, cancelled, or made due.
import { placeOfMessageId, type WakeHint } from '@rouse/protocol'
import { callRows, type Executor } from '../executor.ts'
import { hintFields, readWakeHint } from '../wake-hint.ts'
import { type FoundMessage, type MessageInGroup, readMessage } from './messages.ts'

export interface MessageById extends FoundMessage {
  /** When it entered the log; null if it has not. `createdAt` is the time of the push. */
  readonly enteredAt: Date | null
  readonly cancelledAt: Date | null
  /** From when retention may remove it. Null if that is not known. */
  readonly keptUntil: Date | null
  readonly options: OwnOptions
}

/** What a message has of its own. Null: its queue decides; it does not expire by itself. */
export interface OwnOptions {
  readonly priority: number
  readonly retryLimit: number | null
  readonly retryBackoffMs: readonly number[] | null
  /** In ms since 1970. */
  readonly expiresAt: number | null
}

const parameters = ['uuid', 'bigint', 'bigint']

const findCall = {
  name: 'find_by_id',
  columns:
    'partition_id, seq::float8, partition, message_id, created_at, transaction_id, trace_id, payload, headers, ' +
    'queue, due_at, groups, cancelled_at, kept_until, options',
  parameters,
}

export async function messageById(
  executor: Executor,
  id: string,
): Promise<MessageById | undefined> {
  const [row] = await callRows(executor, findCall, valuesOf(id))
  if (row === undefined) return undefined
  const dueAt = row[10] as Date | null
  return {
    ...readMessage(row),
    enteredAt: row[1] === null ? null : (row[4] as Date),
    queue: row[9] as string,
    groups: row[11] as MessageInGroup[],
    ...(dueAt === null ? {} : { dueAt }),
    cancelledAt: row[12] as Date | null,
    keptUntil: row[13] as Date | null,
    options: row[14] as OwnOptions,
  }
}

export type Cancellation =
  | { readonly outcome: 'cancelled'; readonly woken: readonly WakeHint[] }
  | { readonly outcome: 'leased'; readonly leaseExpiresAtMs: number }
  | { readonly outcome: 'finished' | 'not_found' }

const cancelCall = {
  name: 'cancel_message',
  columns: `outcome, lease_expires_ms, ${hintFields}`,
  parameters,
}

export async function cancelMessage(executor: Executor, id: string): Promise<Cancellation> {
  const [first, ...hints] = await callRows(executor, cancelCall, valuesOf(id))
  const outcome = first?.[0] as Cancellation['outcome']
  if (outcome === 'leased') return { outcome, leaseExpiresAtMs: first?.[1] as number }
  if (outcome !== 'cancelled') return { outcome }
  return { outcome, woken: hints.map((row) => readWakeHint(row, 2)) }
}

export type RunNow =
  | { readonly outcome: 'scheduled' | 'not_scheduled' | 'not_found' }
  | { readonly outcome: 'retrying'; readonly woken: readonly WakeHint[] }

const runNowCall = {
  name: 'run_now',
  columns: `outcome, ${hintFields}`,
  parameters,
}

/** A scheduled message is due then; the caller has it promoted. */
export async function runNow(executor: Executor, id: string): Promise<RunNow> {
  const [first, ...hints] = await callRows(executor, runNowCall, valuesOf(id))
  const outcome = first?.[0] as RunNow['outcome']
  if (outcome !== 'retrying') return { outcome }
  return { outcome, woken: hints.map((row) => readWakeHint(row, 1)) }
}

function valuesOf(id: string): unknown[] {
  const place = placeOfMessageId(id)
  return [id, place?.partitionId ?? null, place?.seq ?? null]
}

const uniqueCall = { name: 'unique_by_id', columns: 'unique_by_id', parameters }

/** The unique key that a message took, as long as no other one has it. */
export interface TakenKey {
  readonly key: string
  readonly scope: 'queue' | 'partition'
  readonly until: 'completed' | { readonly windowMs: number }
  /** Whether a push with this key is a duplicate of the message now. */
  readonly held: boolean
}

export async function uniqueOf(executor: Executor, id: string): Promise<TakenKey | undefined> {
  const [row] = await callRows(executor, uniqueCall, valuesOf(id))
  return (row?.[0] as TakenKey | null | undefined) ?? undefined
}
