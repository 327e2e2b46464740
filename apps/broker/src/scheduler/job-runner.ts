import type { Logger } from '../log.ts'
import type { FiredBy, Job } from './service.ts'

export interface JobRunner {
  /**
   * Runs the job now. During a run, requests one more run, because the current one may miss the new work.
   */
  run(firedBy: FiredBy): void
  /** Resolves when the job is not running. No run starts afterwards. */
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
        // The database is unavailable, or the job did not get a lock. The next due poll runs it again.
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
      // If a timer and a notification request the same run, the wake counters count it for the notification.
      if (waiting !== 'notify') waiting = firedBy
      running ??= runAll()
    },
    async stop() {
      stopped = true
      await running
    },
  }
}
