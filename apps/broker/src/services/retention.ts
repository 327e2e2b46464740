import type { RetainOptions } from '@rouse/sidecar'
import type pg from 'pg'
import type { Logger } from '../log.ts'
import { retentionStep } from '../statements/retention.ts'
import type { Chore } from './service.ts'

/** A step holds the partitions it looks at: few rows and few partitions, so that no push waits long. */
const bounds = { rows: 2_000, partitions: 100 }

/** Takes away what nobody needs any more. One node at a time: whoever finds the step due takes it. */
export function createRetention(options: {
  readonly pool: pg.Pool
  readonly log: Logger
  readonly holder: string
  readonly intervalMs: number
  readonly keep: Omit<RetainOptions, 'after' | 'rows' | 'partitions'>
  /** The next step of the round is due in so many ms. */
  readonly onNext: (inMs: number) => void
}): Chore {
  const { pool, log, holder, intervalMs, keep, onNext } = options
  return {
    async run() {
      const gone = await retentionStep(pool, { holder, intervalMs, ...keep, ...bounds })
      if (gone === undefined) return false
      log.debug({ gone: Object.fromEntries(gone) }, 'retention')
      onNext(gone.get('wait') ?? intervalMs)
      return false
    },
  }
}
