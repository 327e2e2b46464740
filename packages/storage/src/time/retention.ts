import type pg from 'pg'
import { callStatement } from '../call.ts'
import type { RetainOptions } from './maintenance.ts'

export interface RetentionStep extends Omit<RetainOptions, 'after'> {
  readonly holder: string
  /** Between rounds. */
  readonly intervalMs: number
}

/** One step by whichever node comes first. What went, by kind; undefined: not due, or another node took it. */
export async function retentionStep(
  pool: pg.Pool,
  step: RetentionStep,
): Promise<ReadonlyMap<string, number> | undefined> {
  const rows = await callStatement(
    pool,
    'select kind, count::float8 from rouse.retention_step($1, $2, $3, $4, $5, $6, $7, $8, $9)',
    [
      step.holder,
      step.intervalMs,
      step.completedMs,
      step.deadMs,
      step.tracesMs,
      step.idlePartitionMs,
      step.idleGroupMs,
      step.partitions,
      step.rows,
    ],
  )
  return rows.length === 0
    ? undefined
    : new Map(rows.map(([kind, count]) => [kind as string, count as number]))
}

/** A group without a request for a day or longer, and the messages that are kept because of it. */
export interface IdleGroup {
  readonly queue: string
  readonly consumerGroup: string
  readonly lastSeenAt: string
  readonly messages: number
  /** There are more: not every partition was counted. */
  readonly isPartial: boolean
  /** When the oldest of them was created. */
  readonly oldestAt: string | null
  /** Until when it holds them; null: without end. Only while another group of its queue is in use does it let go. */
  readonly until: string | null
}

const idleGroupColumns = `queue, consumer_group, rouse.epoch_ms(last_seen_at), messages::float8, is_partial,
  rouse.epoch_ms(oldest_at), rouse.epoch_ms(until)`

/** Those that hold back retention now, the most messages first. */
export async function idleGroups(
  pool: pg.Pool,
  options: { readonly limit: number; readonly idleGroupMs: number | null },
): Promise<IdleGroup[]> {
  const rows = await callStatement(
    pool,
    `select ${idleGroupColumns} from rouse.idle_groups($1, $2) where let_go_at is null`,
    [options.limit, options.idleGroupMs],
  )
  return rows.map(([queue, consumerGroup, lastSeenAt, messages, isPartial, oldestAt, until]) => ({
    queue: queue as string,
    consumerGroup: consumerGroup as string,
    lastSeenAt: iso(lastSeenAt) as string,
    messages: messages as number,
    isPartial: isPartial as boolean,
    oldestAt: iso(oldestAt),
    until: iso(until),
  }))
}

export interface LetGoGroup {
  readonly queue: string
  readonly consumerGroup: string
  readonly lastSeenAt: string
  readonly messages: number
}

/** Groups that stopped holding messages. Each is answered once for each idle time, to one node. */
export async function takeLetGoGroups(pool: pg.Pool, limit: number): Promise<LetGoGroup[]> {
  const rows = await callStatement(
    pool,
    `select queue, consumer_group, rouse.epoch_ms(last_seen_at), messages::float8 from rouse.warn_idle_groups($1)`,
    [limit],
  )
  return rows.map(([queue, consumerGroup, lastSeenAt, messages]) => ({
    queue: queue as string,
    consumerGroup: consumerGroup as string,
    lastSeenAt: iso(lastSeenAt) as string,
    messages: messages as number,
  }))
}

function iso(atMs: unknown): string | null {
  return atMs === null ? null : new Date(atMs as number).toISOString()
}
