import type { RetainOptions } from '@rouse/storage'
import {
  type IdleGroup,
  idleGroups,
  pruneAudit,
  retentionStep,
  takeLetGoGroups,
} from '@rouse/storage'
import type pg from 'pg'
import type { Logger } from '../../log.ts'
import type { Job } from '../service.ts'

/**
 * The limits of one step, which are needed because a step locks partitions. Usually a step reaches its time
 * limit of 50 ms first.
 */
const bounds = { rows: 10_000, partitions: 1_000 }
/** Limits the idle groups in `/stats`, and the warnings after one step. */
const groupsMax = 20
/** Entries of the audit log are kept for days, so it is enough to look for old ones now and then. */
const intervalsPerPrune = 10

export interface Retention extends Job {
  /** What every node does in each interval, whether or not it takes the step. */
  readonly watch: Job
  /** The consumer groups that hold back retention, as known to this node. */
  readonly holding: readonly IdleGroup[]
}

/** Removes messages whose retention is over. One node at a time takes the step that is due. */
export function createRetention(options: {
  readonly pool: pg.Pool
  readonly log: Logger
  readonly nowMs: () => number
  readonly holder: string
  readonly intervalMs: number
  readonly keep: Omit<RetainOptions, 'after' | 'rows' | 'partitions'>
  /** How long entries of the audit log are kept. */
  readonly auditMs: number
  /** Called with the delay until the next step. */
  readonly onNext: (inMs: number) => void
}): Retention {
  const { pool, log, nowMs, holder, intervalMs, keep, auditMs, onNext } = options
  let holding: readonly IdleGroup[] = []
  let readAtMs = Number.NEGATIVE_INFINITY
  let prunedAtMs = Number.NEGATIVE_INFINITY

  async function warnOfLetGo(): Promise<void> {
    for (const group of await takeLetGoGroups(pool, groupsMax)) {
      log.warn(
        group,
        'consumer group idle for ROUSE_IDLE_GROUP_SECONDS; messages that all other groups have completed may be removed before this group gets them',
      )
    }
  }

  /**
   * Every node reads the groups, not only the node that took the step, because each serves its own `/stats`.
   */
  async function readHolding(): Promise<void> {
    if (nowMs() - readAtMs < intervalMs) return
    readAtMs = nowMs()
    holding = await idleGroups(pool, { limit: groupsMax, idleGroupMs: keep.idleGroupMs })
  }

  async function prune(): Promise<void> {
    if (nowMs() - prunedAtMs < intervalsPerPrune * intervalMs) return
    // If as many were removed as one step may remove, there are more.
    const isDone = (await pruneAudit(pool, auditMs, bounds.rows)) < bounds.rows
    if (isDone) prunedAtMs = nowMs()
  }

  return {
    get holding() {
      return holding
    },
    watch: {
      async run() {
        await readHolding()
        return false
      },
    },
    async run() {
      const gone = await retentionStep(pool, { holder, intervalMs, ...keep, ...bounds })
      if (gone !== undefined) {
        log.debug({ gone: Object.fromEntries(gone) }, 'retention step done')
        onNext(gone.get('wait') ?? intervalMs)
        if ((gone.get('let_go') ?? 0) > 0) await warnOfLetGo()
        await prune()
      }
      await readHolding()
      return false
    },
  }
}
