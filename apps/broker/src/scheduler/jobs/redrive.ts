import type { WakeHint } from '@rouse/protocol'
import { redriveStep } from '@rouse/storage'
import type pg from 'pg'
import type { Chore } from '../service.ts'

/** Takes steps of redrives that are due. Where a redrive stands is in the database: any node can take the next step. */
export function createRedriver(options: {
  readonly pool: pg.Pool
  readonly holder: string
  readonly onWoken: (woken: readonly WakeHint[]) => void
  /** The next step is due in so many ms. */
  readonly onNext: (inMs: number) => void
}): Chore {
  const { pool, holder, onWoken, onNext } = options
  return {
    async run() {
      const step = await redriveStep(pool, holder)
      if (step === undefined) return false
      onWoken(step.woken)
      if (step.nextInMs !== null && step.nextInMs > 0) onNext(step.nextInMs)
      return step.nextInMs === 0
    },
  }
}

/** Chores that fall due together; the failure of one does not stop the others. */
export function together(...chores: readonly Chore[]): Chore {
  return {
    async run(firedBy) {
      const runs = await Promise.allSettled(chores.map((chore) => chore.run(firedBy)))
      const failed = runs.find((run) => run.status === 'rejected')
      if (failed !== undefined) throw failed.reason as Error
      return runs.some((run) => run.status === 'fulfilled' && run.value)
    },
  }
}
