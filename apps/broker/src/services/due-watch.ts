// Asks once a second when something falls due, and lets the reaper and the promoter run when it does: at that very
// moment where it is known, so that nothing waits for the next second and an idle node makes one query a second.
import type pg from 'pg'
import type { Logger } from '../log.ts'
import { nextDue } from '../statements/next-due.ts'
import type { Chore, Service } from './service.ts'

const roundMs = 1_000
/** What is overdue and could not be moved is locked by somebody just now. */
const againMs = 50

export function createDueWatch(options: {
  readonly pool: pg.Pool
  readonly log: Logger
  readonly reaper: Chore
  readonly promoter: Chore
  readonly nowMs: () => number
}): Service {
  const { pool, log, reaper, promoter } = options
  let timer: NodeJS.Timeout | undefined
  let round: Promise<void> = Promise.resolve()
  let running = false
  let failing = false

  async function runRound(): Promise<void> {
    let nextMs = roundMs
    try {
      const { reapInMs, promoteInMs } = await nextDue(pool)
      const delays = await Promise.all([
        runIfDue(reaper, reapInMs),
        runIfDue(promoter, promoteInMs),
      ])
      nextMs = Math.min(roundMs, ...delays)
      failing = false
    } catch (error) {
      // The database is away, or the node just lost a race for a lock: the next round tries again.
      if (running && !failing) {
        log.warn({ reason: (error as Error).message }, 'could not look for what is due')
      }
      failing = true
    }
    if (running) timer = setTimeout(begin, nextMs)
  }

  function begin(): void {
    round = runRound()
  }

  return {
    async start() {
      if (running) return
      running = true
      begin()
    },
    async stop() {
      running = false
      clearTimeout(timer)
      await round
    },
  }
}

/** Milliseconds until it has to be looked at again. */
async function runIfDue(chore: Chore, inMs: number | null): Promise<number> {
  if (inMs === null) return roundMs
  if (inMs > 0) return Math.ceil(inMs)
  return (await chore.run()) ? 0 : againMs
}
