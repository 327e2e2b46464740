// The primary of a node: it decides who is woken, keeps time, and keeps the workers alive. It serves no user.
import { createPool } from '@rouse/database'
import { systemClock } from './clock.ts'
import type { Config } from './config.ts'
import { ConfigError } from './config-error.ts'
import { createLogger } from './log.ts'
import { nodeStats } from './node-stats.ts'
import { prepareDatabase } from './prepare-database.ts'
import { createDueWatch } from './services/due-watch.ts'
import { createPromoter } from './services/promoter.ts'
import { createReaper } from './services/reaper.ts'
import { SharedStateHost } from './shared-state-host.ts'
import { WorkerProcesses } from './worker-processes.ts'

/** The fallback check, the reaper, the promoter and the watch for what is due, each with its own. */
const connectionsMax = 4
const drainMsMax = 9_500

/** Resolves with the exit code when the node has ended. */
export async function runPrimary(config: Config): Promise<number> {
  const log = createLogger({ level: config.logLevel, node: config.nodeId, process: 'primary' })
  const stopped = untilSignal('SIGTERM', 'SIGINT')
  const applicationName = `rouse ${config.nodeId} primary`
  const pool = createPool({ url: config.databaseUrl, max: connectionsMax, applicationName })
  const startedAtMs = systemClock.nowMs()
  try {
    await prepareDatabase({ pool, config, log, stopped })
  } catch (error) {
    log.fatal({ err: error }, 'the database could not be prepared')
    return 1
  }

  const workers: WorkerProcesses = new WorkerProcesses({
    count: config.workers,
    clock: systemClock,
    log,
    onMessages: (id, messages) => host.handle(id, messages),
    onExit: (id, how) => host.workerGone(id, how),
  })
  const host = new SharedStateHost({
    config,
    clock: systemClock,
    log,
    pool,
    post: (id, message) => workers.post(id, message),
    stats: (shared, figures) =>
      nodeStats({
        config,
        shared,
        figures,
        uptimeMs: systemClock.nowMs() - startedAtMs,
        clock: systemClock,
      }),
  })
  const reaper = createReaper({ pool, onWoken: (woken) => host.notifyFree(woken) })
  const promoter = createPromoter({ pool, onWoken: (woken) => host.notifyAvailable(woken) })
  const dueWatch = createDueWatch({ pool, log, reaper, promoter, nowMs: systemClock.nowMs })

  const failed = workers.start()
  await dueWatch.start()
  const reason = await Promise.race([stopped, failed])
  if (reason instanceof ConfigError) log.fatal(reason.message)
  else log.info({ signal: reason }, 'draining')
  await dueWatch.stop()
  await workers.drain(drainMsMax)
  host.stop()
  await pool.end()
  log.info('stopped')
  return reason instanceof ConfigError ? 1 : 0
}

/** Later signals are heard and mean nothing new: npm and a terminal both send them. */
function untilSignal(...signals: readonly NodeJS.Signals[]): Promise<string> {
  return new Promise((resolve) => {
    for (const signal of signals) process.on(signal, () => resolve(signal))
    // Run by a supervisor with a channel to it, the node does not outlive it.
    process.on('disconnect', () => resolve('the supervisor is gone'))
  })
}
