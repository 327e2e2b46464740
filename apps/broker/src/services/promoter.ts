import { type Executor, promoteDue, type Woken } from '@rouse/sidecar'
import type { Chore, FiredBy } from './service.ts'

const rowsMax = 1_000

/** Moves on what is due: delayed messages, retries, lanes that were blocked or freed by SQL. */
export function createPromoter(options: {
  readonly executor: Executor
  readonly onWoken: (woken: readonly Woken[], firedBy: FiredBy) => void
}): Chore {
  return {
    async run(firedBy) {
      const woken = await promoteDue(options.executor, rowsMax)
      options.onWoken(woken, firedBy)
      return woken.reduce((sum, { count }) => sum + count, 0) >= rowsMax
    },
  }
}
