import type { RetainOptions } from '@rouse/sidecar'
import type pg from 'pg'
import { callStatement } from './call.ts'

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
