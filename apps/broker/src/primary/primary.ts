// The primary of a node: decides which worker pops, runs the scheduler, and restarts workers. It serves no
// user requests.
import { setTimeout as delay } from 'node:timers/promises'
import { createPool } from '@rouse/database'
import { systemClock } from '../clock.ts'
import type { ClusterLink } from '../cluster/link.ts'
import type { Config } from '../config/config.ts'
import { ConfigError } from '../config/config-error.ts'
import { nodeConnections, primaryPoolMax } from '../config/connections.ts'
import { openTls } from '../http/tls.ts'
import { createLogger, type Logger, logLimit } from '../log.ts'
import { NodeActivity } from '../observe/node-activity.ts'
import { logNotices } from '../sql-notices.ts'
import { mayStart } from './closed-start.ts'
import { createNodeParts, type NodeParts } from './node.ts'
import { type PreparedDatabase, prepareDatabase } from './prepare-database.ts'
import { createServiceManager } from './service-manager.ts'
import { startListener } from './start-listener.ts'

const drainMsMax = 9_500
const leaveMsMax = 2_000

/** Resolves with the exit code when the node has stopped. `reload` reads the configuration again. */
export async function runPrimary(config: Config, reload: () => Config): Promise<number> {
  const { logLevel: level, logFormat: format, nodeId: node } = config
  const log = createLogger({ level, format, node, process: 'primary' })
  const stopped = untilSignal('SIGTERM', 'SIGINT')
  const pool = createPool({
    url: config.databaseUrl,
    max: primaryPoolMax,
    applicationName: `rouse ${config.nodeId} primary`,
    onLimit: logLimit(log),
  })
  const activity = new NodeActivity({ ...systemClock, namedQueuesMax: config.metricsQueuesMax })
  const onDeadLetters = activity.deadLettered.bind(activity)
  logNotices(pool, log, systemClock.nowMs, onDeadLetters)
  warnOfDeprecated(config, log)
  if (!isTlsUsable(config, log)) return 1
  let prepared: PreparedDatabase | undefined
  let reason = 'the database is being prepared'
  const listener = startListener({ config, log, reason: () => reason })
  try {
    const onWait = (wait: string) => {
      reason = wait
      listener.open()
    }
    prepared = await prepareDatabase({ pool, config, log, stopped, random: Math.random, onWait })
  } catch (error) {
    log.fatal({ err: error }, 'the database could not be prepared')
    return 1
  } finally {
    await listener.stop()
  }
  if (prepared === undefined) return 0
  if (!mayStart(config, prepared.keyTable.hasKeys, log)) return 1
  const { identity, serverConnections, keyTable } = prepared
  const connections = nodeConnections(config, serverConnections)
  const { node: perNode, worker: perWorker } = connections
  log.info({ perNode, perWorker, serverMax: serverConnections }, 'connection limits for PostgreSQL')

  const manager = createServiceManager(config.notifySocket, log)
  let parts: NodeParts
  try {
    const given = { config, identity, connections, keyTable, pool, log, activity }
    parts = createNodeParts({ ...given, onReady: manager.ready })
    await parts.link.start()
  } catch (error) {
    log.fatal({ err: error }, 'gossip could not start')
    return 1
  }
  const { workers, host, link, time, keys, issuer, superseded } = parts
  process.on('SIGHUP', () => renewFiles(parts, reload, log))
  keys.start()
  issuer.start()
  const failed = workers.start(host)
  // A signal must end the node even if the database stops answering at this point.
  await Promise.race([time.start(), stopped])
  const ending = await Promise.race([stopped, failed, superseded])
  if (ending instanceof ConfigError) log.fatal(ending.message)
  else log.info({ signal: ending }, 'draining')
  manager.stopping()
  // Both stop in parallel, so that a slow job or an unresponsive database does not delay the workers' drain.
  const [areJobsDone, areWorkersDone] = await Promise.all([
    atMost(drainMsMax, time.stop()),
    workers.drain(drainMsMax),
  ])
  if (!areJobsDone) host.outcomeUnknown()
  host.stop()
  // Unfinished work may still commit without a hint. If this node sends no leave message, its peers treat it
  // as crashed and poll for its messages.
  const isDone = areJobsDone && areWorkersDone
  if (!isDone) log.warn('shutdown incomplete; exiting without a leave message')
  await atMost(
    leaveMsMax,
    Promise.all([link.stop({ leave: isDone }), keys.stop(), issuer.stop()]).then(() => pool.end()),
  )
  log.info('stopped')
  return ending instanceof ConfigError || !isDone ? 1 : 0
}

function warnOfDeprecated(config: Config, log: Logger): void {
  if (config.poolMax === undefined) return
  log.warn(
    'ROUSE_POOL_MAX is deprecated: set ROUSE_CONNECTIONS_MAX, which applies to the whole node',
  )
}

/**
 * Resolves to false on timeout. The process then exits, and PostgreSQL finishes or rolls back the statement.
 */
async function atMost(ms: number, work: Promise<void>): Promise<boolean> {
  return await Promise.race([work.then(() => true), delay(ms, false)])
}

function isTlsUsable(config: Config, log: Logger): boolean {
  try {
    openTls(config, log)
    return true
  } catch (error) {
    log.fatal((error as Error).message)
    return false
  }
}

/**
 * Reads the gossip secret and the files of TLS again. No other setting can change without a restart. The
 * secret can be rotated node by node.
 */
function renewFiles({ link, workers }: NodeParts, reload: () => Config, log: Logger): void {
  renewSecret(link, reload, log)
  workers.postAll({ type: 'reloadTls' })
}

function renewSecret(link: ClusterLink, reload: () => Config, log: Logger): void {
  try {
    link.replaceSecret(reload().gossipSecret)
    log.info('gossip secret reloaded')
  } catch (error) {
    log.error(
      { reason: (error as Error).message },
      'could not reload the gossip secret; keeping the old one',
    )
  }
}

/** Ignores repeated signals: npm and the terminal both send one. */
function untilSignal(...signals: readonly NodeJS.Signals[]): Promise<string> {
  return new Promise((resolve) => {
    for (const signal of signals) process.on(signal, () => resolve(signal))
    // A node with an IPC channel to a supervisor must not outlive the supervisor.
    process.on('disconnect', () => resolve('supervisor exited'))
  })
}
