import { setTimeout as delay } from 'node:timers/promises'
import type { SidecarDbPool } from '@rouse/sidecar'
import type pg from 'pg'
import type { Logger } from '../log.ts'
import { unfinishedExitCode } from '../primary/worker-pool.ts'

/** The primary kills the remaining workers after 9.5 s. */
const drainMsMax = 9_000

export interface WorkerDrain {
  /**
   * From now on every response closes its connection. The worker exits when all requests are done or when
   * `drainMsMax` is over. The exit code shows whether the worker left work unfinished: such work may still
   * commit without a hint. Idempotent.
   */
  begin(): void
}

export function createWorkerDrain(options: {
  readonly phase: { isDraining: boolean }
  readonly log: Logger
  readonly sidecar: SidecarDbPool
  readonly pool: pg.Pool
  /** The number of connected clients. */
  readonly connections: () => Promise<number>
  /** How long the worker still listens, while every response closes its connection. */
  readonly delayMs: number
  /** Stops listening. Resolves when the last response is sent. */
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
        log.warn({ underWay }, 'drain timed out')
        process.exit(underWay === 0 ? 0 : unfinishedExitCode)
      }, drainMsMax)
      timer.unref()
      drain().then(
        () => process.exit(0),
        (error: unknown) => {
          log.error({ err: error }, 'drain failed')
          process.exit(unfinishedExitCode)
        },
      )
    },
  }
}
