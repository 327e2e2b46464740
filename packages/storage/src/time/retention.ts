import type pg from 'pg'
import { callStatement } from '../call.ts'
import type { RetainOptions } from './maintenance.ts'

export interface RetentionStep extends Omit<RetainOptions, 'after'> {
  readonly holder: string
  /** Time between rounds. */
  readonly intervalMs: number
}

/**
 * Runs one step of retention. Resolves to the number removed by kind, or to undefined if no step is due or
 * another node runs it.
 */
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

/** The jobs that are due, of those that nodes share: `redrive`, `removal`, and the parts of retention. */
export async function dueChores(pool: pg.Pool): Promise<ReadonlySet<string>> {
  const rows = await callStatement(
    pool,
    'select c.name from rouse.chores c where c.next_at <= rouse.now()',
  )
  return new Set(rows.map(([name]) => name as string))
}

/** A group without a request for a day or longer, and the messages it retains. */
export interface IdleGroup {
  readonly queue: string
  readonly consumerGroup: string
  readonly lastSeenAt: string
  readonly messages: number
  /** The count is a minimum: not every partition was counted. */
  readonly isPartial: boolean
  /** When the oldest of these messages was created. */
  readonly oldestAt: string | null
  /**
   * The time until which the group retains these messages; null: permanently. After that time it retains them
   * only if no other group of its queue is in use.
   */
  readonly until: string | null
}

const idleGroupColumns = `queue, consumer_group, rouse.epoch_ms(last_seen_at), messages::float8, is_partial,
  rouse.epoch_ms(oldest_at), rouse.epoch_ms(until)`

/** The groups that currently hold back retention, those with the most messages first. */
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

/** Groups that stopped retaining messages. Each idle period is reported once, to one node. */
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
