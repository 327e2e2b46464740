import type { WakeHint } from '@rouse/protocol'
import { redriveStep } from '@rouse/storage'
import type pg from 'pg'
import type { Job } from '../service.ts'

/** Takes the redrive steps that are due. Progress is in the database, so any node can take the next one. */
export function createRedriver(options: {
  readonly pool: pg.Pool
  readonly holder: string
  readonly onWoken: (woken: readonly WakeHint[]) => void
  /** Called with the delay until the next step. */
  readonly onNext: (inMs: number) => void
}): Job {
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

/** Runs jobs that share a due time. If one fails, the others still run. */
export function together(...jobs: readonly Job[]): Job {
  return {
    async run(firedBy) {
      const runs = await Promise.allSettled(jobs.map((job) => job.run(firedBy)))
      const failed = runs.find((run) => run.status === 'rejected')
      if (failed !== undefined) throw failed.reason as Error
      return runs.some((run) => run.status === 'fulfilled' && run.value)
    },
  }
}
