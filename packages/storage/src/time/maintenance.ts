import type { WakeHint } from '@rouse/protocol'
import { callRows, type Executor } from '../executor.ts'
import { hintFields, readWakeHint, wakeHintColumns } from '../wake-hint.ts'

/** The result of a bounded step, and whether more remains. */
export interface Step {
  readonly woken: WakeHint[]
  readonly isMore: boolean
}

const reapCall = {
  name: 'reap_step',
  columns: `is_more, ${hintFields}`,
  parameters: ['integer'],
}

/** Ends expired leases. Each of their messages is redelivered under its own lease. */
export async function reapStep(executor: Executor, limit = 1000): Promise<Step> {
  const rows = await callRows(executor, reapCall, [limit])
  return {
    woken: rows.filter((row) => row[0] === false).map((row) => readWakeHint(row, 1)),
    isMore: rows.some((row) => row[0] === true),
  }
}

export async function reapExpired(executor: Executor, limit?: number): Promise<WakeHint[]> {
  return (await reapStep(executor, limit)).woken
}

const readyCall = { name: 'promote_ready', columns: wakeHintColumns, parameters: ['integer'] }

/**
 * Opens lanes whose block has ended or that ack_in freed, and makes redeliveries that are due deliverable.
 */
export async function promoteReady(executor: Executor, limit = 1000): Promise<Step> {
  const woken = (await callRows(executor, readyCall, [limit])).map((row) => readWakeHint(row))
  return { woken, isMore: woken.length >= limit }
}

export interface ScheduledStep extends Step {
  /** Partitions locked at the moment: `promotePartition` waits for them. */
  readonly locked: readonly PartitionName[]
  readonly failed: readonly (PartitionName & { readonly reason: string })[]
}

export interface PartitionName {
  readonly queue: string
  readonly partition: string
}

const promotedColumns = `outcome, reason, ${hintFields}`
const scheduledCall = {
  name: 'promote_scheduled',
  columns: promotedColumns,
  parameters: ['integer'],
}
const partitionCall = {
  name: 'promote_partition',
  columns: promotedColumns,
  parameters: ['text', 'text', 'integer', 'integer'],
}

/** Moves scheduled messages that are due into the log, without waiting for locks. */
export async function promoteScheduled(executor: Executor, limit = 1000): Promise<ScheduledStep> {
  return readPromoted(await callRows(executor, scheduledCall, [limit]))
}

/** The same for one partition, but waits for its lock. Rejects with 55P03 if that takes too long. */
export async function promotePartition(
  executor: Executor,
  { queue, partition }: PartitionName,
  { limit, lockMs }: { readonly limit: number; readonly lockMs: number },
): Promise<WakeHint[]> {
  return readPromoted(await callRows(executor, partitionCall, [queue, partition, limit, lockMs]))
    .woken
}

function readPromoted(rows: readonly unknown[][]): ScheduledStep {
  const of = (outcome: string): unknown[][] => rows.filter((row) => row[0] === outcome)
  const name = (row: readonly unknown[]): PartitionName => ({
    queue: row[2] as string,
    partition: row[3] as string,
  })
  return {
    woken: of('promoted').map((row) => readWakeHint(row, 2)),
    isMore: of('more').length > 0,
    locked: of('locked').map(name),
    failed: of('failed').map((row) => ({ ...name(row), reason: row[1] as string })),
  }
}

/** Promotes everything that is due, or with a limit what one step of each kind finds. A step also ends after
 * some milliseconds, so on a busy machine everything may take several. */
export async function promoteDue(executor: Executor, limit?: number): Promise<WakeHint[]> {
  const { woken } = await promoteReady(executor, limit)
  const all = [...woken]
  for (;;) {
    const step = await promoteScheduled(executor, limit)
    all.push(...step.woken)
    if (limit !== undefined || !step.isMore) return all
  }
}

export interface RetainOptions {
  readonly completedMs: number
  readonly deadMs: number
  readonly tracesMs: number
  readonly idlePartitionMs: number
  /** Null: an idle group keeps its unconsumed messages permanently. */
  readonly idleGroupMs: number | null
  readonly partitions: number
  readonly rows: number
  /** The partition to continue after; the previous call's `next`. */
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
  /** Where the next call continues: 0 when the round is complete. */
  readonly next: string
}

const retainCall = {
  name: 'retain',
  columns: 'kind, count',
  parameters: ['bigint', 'bigint', 'bigint', 'bigint', 'bigint', 'integer', 'integer', 'bigint'],
}

/** Removes messages and state that are no longer needed, in one bounded step. */
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
