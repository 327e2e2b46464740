// Jobs that take one bounded step per run: expired leases, redrives, removals.
import type { WakeHint } from '@rouse/protocol'
import { type Executor, reapStep } from '@rouse/storage'
import type { Job } from '../service.ts'

const leasesMax = 1_000

/** Ends expired leases and reports wake hints for the lanes that are free again. */
export function createReaper(options: {
  readonly executor: Executor
  readonly onWoken: (woken: readonly WakeHint[]) => void
}): Job {
  return {
    async run() {
      const { woken, isMore } = await reapStep(options.executor, leasesMax)
      options.onWoken(woken)
      return isMore
    },
  }
}

interface Step {
  readonly woken: readonly WakeHint[]
  /** The delay until the next step. Null: nothing is left to do. */
  readonly nextInMs: number | null
}

/** A job that nodes share. Its progress is stored in the database, so any node can take the next step. */
export function createSharedJob(options: {
  /** Undefined: no step is due, or another node took it. */
  readonly takeStep: () => Promise<Step | undefined>
  readonly onWoken: (woken: readonly WakeHint[]) => void
  /** Called with the delay until the next step. */
  readonly onNext: (inMs: number) => void
}): Job {
  const { takeStep, onWoken, onNext } = options
  return {
    async run() {
      const step = await takeStep()
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
