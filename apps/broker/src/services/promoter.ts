import { type Executor, promoteDue, type Woken } from '@rouse/sidecar'
import type pg from 'pg'
import type { Chore } from './service.ts'

const rowsMax = 1_000

/** Moves on what is due: delayed messages, retries, lanes that were blocked or freed by SQL. */
export function createPromoter(options: {
  readonly pool: pg.Pool
  readonly onWoken: (woken: readonly Woken[]) => void
}): Chore {
  return {
    async run() {
      const woken = await promoteDue(options.pool as unknown as Executor, rowsMax)
      options.onWoken(woken)
      return woken.reduce((sum, { count }) => sum + count, 0) >= rowsMax
    },
  }
}
