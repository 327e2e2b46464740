import { setTimeout as delay } from 'node:timers/promises'
import type { SidecarDbPool } from '@rouse/sidecar'
import type pg from 'pg'
import type { Logger } from '../log.ts'
import { unfinishedExitCode } from '../primary/worker-pool.ts'

/** The primary kills at 9.5 s what has not ended by itself. */
const drainMsMax = 9_000

export interface WorkerDrain {
  /** From here on every answer closes its connection, and the worker ends when nothing is under way, or when its time is
   * over. Its exit code says whether it left anything under way: that may yet be committed, and nobody was told of it.
   * Safe twice. */
  begin(): void
}

export function createWorkerDrain(options: {
  readonly phase: { isDraining: boolean }
  readonly log: Logger
  readonly sidecar: SidecarDbPool
  readonly pool: pg.Pool
  /** How many clients are connected. */
  readonly connections: () => Promise<number>
  /** For so long, answers go on and close their connections: clients and balancers leave by themselves. */
  readonly delayMs: number
  /** Stops listening; resolves when the last answer is out. */
  readonly close: () => Promise<void>
  readonly stop: () => void
}): WorkerDrain {
  const { phase, log, sidecar, pool } = options

  async function drain(): Promise<void> {
    options.stop()
    await sidecar.drain()
    if ((await options.connections()) > 0) await delay(options.delayMs)
    await options.close()
    await sidecar.stop()
    await pool.end()
  }

  return {
    begin() {
      if (phase.isDraining) return
      phase.isDraining = true
      const timer = setTimeout(() => {
        const underWay = pool.totalCount - pool.idleCount
        log.warn({ underWay }, 'did not finish in time')
        process.exit(underWay === 0 ? 0 : unfinishedExitCode)
      }, drainMsMax)
      timer.unref()
      drain().then(
        () => process.exit(0),
        (error: unknown) => {
          log.error({ err: error }, 'the drain failed')
          process.exit(unfinishedExitCode)
        },
      )
    },
  }
}
