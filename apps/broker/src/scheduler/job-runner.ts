import type { Logger } from '../log.ts'
import type { Chore, FiredBy } from './service.ts'

export interface ChoreRunner {
  /** Runs it now, or once more after the run that is under way: what came due meanwhile may have been too late for it. */
  run(firedBy: FiredBy): void
  /** Resolves when nothing runs; from then on nothing is begun. */
  stop(): Promise<void>
  readonly runs: number
}

export function oneAtATime(name: string, chore: Chore, log: Logger): ChoreRunner {
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
        if (await chore.run(firedBy)) waiting ??= firedBy
        failing = false
      } catch (error) {
        // The database is away, or a race for a lock was lost: the next look at what is due tries again.
        if (!failing && !stopped) {
          log.warn({ chore: name, reason: (error as Error).message }, 'a chore failed')
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
      // A notification says more than a timer, for whoever counts wakes.
      if (waiting !== 'notify') waiting = firedBy
      running ??= runAll()
    },
    async stop() {
      stopped = true
      await running
    },
  }
}
