import type { WakeHint } from '@rouse/protocol'
import type pg from 'pg'
import { callStatement } from '../call.ts'
import { hintFields, readWakeHint } from '../wake-hint.ts'

export interface RemovalStep {
  /** The queue in which the step may have made messages deliverable. */
  readonly woken: readonly WakeHint[]
  /** Null: nothing is left to remove. */
  readonly nextInMs: number | null
}

/** Runs one step of a removal. Resolves to undefined if no step is due or another node runs it. */
export async function removalStep(pool: pg.Pool, holder: string): Promise<RemovalStep | undefined> {
  const [row] = await callStatement(
    pool,
    `select wait_ms::float8, ${hintFields} from rouse.removal_step($1)`,
    [holder],
  )
  if (row === undefined) return undefined
  const [nextInMs, queue] = row as [number | null, string | null]
  return { woken: queue === null ? [] : [readWakeHint(row, 1)], nextInMs }
}

/** A purge that has not reached all partitions yet; undefined if there is none. */
export async function purgeUnderWay(
  pool: pg.Pool,
  queue: string,
): Promise<{ readonly requestedAt: string } | undefined> {
  const [row] = await callStatement(
    pool,
    `select (extract(epoch from r.requested_at) * 1000)::float8
     from rouse.removals r join rouse.queues q on q.id = r.queue_id
     where q.name = $1 and r.kind = 'purge' and r.phase in ('scheduled', 'tails')`,
    [queue],
  )
  return row === undefined ? undefined : { requestedAt: new Date(row[0] as number).toISOString() }
}
