import type { Logger } from '../log.ts'
import type { FiredBy, Job } from './service.ts'

export interface JobRunner {
  /**
   * Runs the job now, or once more after the current run, which may have started too early for the new work.
   */
  run(firedBy: FiredBy): void
  /** Resolves when nothing runs. No run starts afterwards. */
  stop(): Promise<void>
  readonly runs: number
}

export function oneAtATime(name: string, job: Job, log: Logger): JobRunner {
  let waiting: FiredBy | undefined
  let running: Promise<void> | undefined
  let stopped = false
  let failing = false
  let runs = 0

  async function runAll(): Promise<void> {
    while (waiting !== undefined && !stopped) {
      const firedBy = waiting
      waiting = undefined
      runs += 1
      try {
        if (await job.run(firedBy)) waiting ??= firedBy
        failing = false
      } catch (error) {
        // The database is unavailable, or the job lost a race for a lock: the next due poll retries.
        if (!failing && !stopped) {
          log.warn({ job: name, reason: (error as Error).message }, 'job failed')
        }
        failing = true
        waiting = undefined
      }
    }
    running = undefined
  }

  return {
    get runs() {
      return runs
    },
    run(firedBy) {
      // If both ask, the wake counters attribute the run to the notification.
      if (waiting !== 'notify') waiting = firedBy
      running ??= runAll()
    },
    async stop() {
      stopped = true
      await running
    },
  }
}
