import { callRows, type Executor } from './executor.ts'
import { readWoken, type Woken, wokenColumns } from './woken.ts'

const reapCall = { name: 'reap_expired', columns: wokenColumns, parameters: ['integer'] }

/** Takes back leases that ran out; their messages come back one per lease. */
export async function reapExpired(executor: Executor, limit = 1000): Promise<Woken[]> {
  return (await callRows(executor, reapCall, [limit])).map((row) => readWoken(row))
}

const promoteCall = { name: 'promote_due', columns: wokenColumns, parameters: ['integer'] }

/** Moves on what is due: scheduled messages, redeliveries, blocked lanes, lanes freed by ack_in. */
export async function promoteDue(executor: Executor, limit = 1000): Promise<Woken[]> {
  return (await callRows(executor, promoteCall, [limit])).map((row) => readWoken(row))
}

export interface RetainOptions {
  readonly completedMs: number
  readonly deadMs: number
  readonly tracesMs: number
  readonly idlePartitionMs: number
  /** Null: an idle group holds what it has not consumed for ever. */
  readonly idleGroupMs: number | null
  readonly partitions: number
  readonly rows: number
  /** The partition after which to go on; the last call's `next`. */
  readonly after: string
}

export const retainDefaults: RetainOptions = {
  completedMs: 86_400_000,
  deadMs: 1_209_600_000,
  tracesMs: 604_800_000,
  idlePartitionMs: 604_800_000,
  idleGroupMs: null,
  partitions: 1_000,
  rows: 10_000,
  after: '0',
}

export interface Retained {
  readonly messages: number
  readonly dedup: number
  readonly deadLetters: number
  readonly attempts: number
  readonly traces: number
  readonly partitions: number
  /** Where the next call goes on: 0 when the round is complete. */
  readonly next: string
}

const retainCall = {
  name: 'retain',
  columns: 'kind, count',
  parameters: ['bigint', 'bigint', 'bigint', 'bigint', 'bigint', 'integer', 'integer', 'bigint'],
}

/** Takes away what nobody needs any more, in one bounded step. */
export async function retain(
  executor: Executor,
  options: Partial<RetainOptions> = {},
): Promise<Retained> {
  const o = { ...retainDefaults, ...options }
  const rows = await callRows(executor, retainCall, [
    o.completedMs,
    o.deadMs,
    o.tracesMs,
    o.idlePartitionMs,
    o.idleGroupMs,
    o.partitions,
    o.rows,
    o.after,
  ])
  const counts = new Map(rows.map((row) => [row[0] as string, row[1] as string]))
  const count = (kind: string): number => Number(counts.get(kind) ?? 0)
  return {
    messages: count('messages'),
    dedup: count('dedup'),
    deadLetters: count('dead_letters'),
    attempts: count('attempts'),
    traces: count('traces'),
    partitions: count('partitions'),
    next: counts.get('next') ?? '0',
  }
}
