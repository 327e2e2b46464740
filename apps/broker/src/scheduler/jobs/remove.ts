import type { WakeHint } from '@rouse/protocol'
import { removalStep } from '@rouse/storage'
import type pg from 'pg'
import type { Job } from '../service.ts'

/** Removes purged or deleted messages. Progress is in the database, so any node can take the next step. */
export function createRemover(options: {
  readonly pool: pg.Pool
  readonly holder: string
  readonly onWoken: (woken: readonly WakeHint[]) => void
  /** Called with the delay until the next step. */
  readonly onNext: (inMs: number) => void
}): Job {
  const { pool, holder, onWoken, onNext } = options
  return {
    async run() {
      const step = await removalStep(pool, holder)
      if (step === undefined) return false
      onWoken(step.woken)
      if (step.nextInMs !== null) onNext(step.nextInMs)
      return false
    },
  }
}
