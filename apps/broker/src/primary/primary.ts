// The primary of a node: it decides who is woken, keeps time, and keeps the workers alive. It serves no user.
import { setTimeout as delay } from 'node:timers/promises'
import { createPool } from '@rouse/database'
import type { ClusterLink } from '../cluster/link.ts'
import type { Config } from '../config/config.ts'
import { ConfigError } from '../config/config-error.ts'
import { nodeConnections, primaryPoolMax } from '../config/connections.ts'
import { createLogger, type Logger, logLimit } from '../log.ts'
import { createNodeParts, type NodeParts } from './node.ts'
import { type PreparedDatabase, prepareDatabase } from './prepare-database.ts'
import { startListener } from './start-listener.ts'

const drainMsMax = 9_500
const goodbyeMsMax = 2_000

/** Resolves with the exit code when the node has ended. `reload` reads the configuration anew. */
export async function runPrimary(config: Config, reload: () => Config): Promise<number> {
  const log = createLogger({ level: config.logLevel, node: config.nodeId, process: 'primary' })
  const stopped = untilSignal('SIGTERM', 'SIGINT')
  const applicationName = `rouse ${config.nodeId} primary`
  const pool = createPool({
    url: config.databaseUrl,
    max: primaryPoolMax,
    applicationName,
    onLimit: logLimit(log),
  })
  if (config.poolMax !== undefined) {
    log.warn('ROUSE_POOL_MAX is deprecated: set ROUSE_CONNECTIONS_MAX, for the node as a whole')
  }
  let prepared: PreparedDatabase | undefined
  let reason = 'the database is being prepared'
  const listener = startListener({ config, log, reason: () => reason })
  try {
    const onWait = (wait: string) => {
      reason = wait
    }
    prepared = await prepareDatabase({ pool, config, log, stopped, random: Math.random, onWait })
  } catch (error) {
    log.fatal({ err: error }, 'the database could not be prepared')
    return 1
  } finally {
    await listener.stop()
  }
  if (prepared === undefined) return 0
  const { identity, serverConnections } = prepared
  const connections = nodeConnections(config, serverConnections)
  log.info({ ...connections, serverMax: serverConnections }, 'connections to PostgreSQL, at most')

  let parts: NodeParts
  try {
    parts = createNodeParts({ config, identity, connections, pool, log })
    await parts.link.start()
  } catch (error) {
    log.fatal({ err: error }, 'gossip could not start')
    return 1
  }
  const { workers, host, link, time, superseded } = parts
  process.on('SIGHUP', () => renewSecret(link, reload, log))
  const failed = workers.start()
  // A database that falls silent now does not keep the node from hearing that it should end.
  await Promise.race([time.start(), stopped])
  const ending = await Promise.race([stopped, failed, superseded])
  if (ending instanceof ConfigError) log.fatal(ending.message)
  else log.info({ signal: ending }, 'draining')
  // Together: no chore that takes long, and no database that is silent, keeps workers from saying that they drain.
  const [areChoresDone, areWorkersDone] = await Promise.all([
    atMost(drainMsMax, time.stop()),
    workers.drain(drainMsMax),
  ])
  if (!areChoresDone) host.outcomeUnknown()
  host.stop()
  // What was left under way may yet be committed, and nobody will tell: peers shall look for it as they do after a crash.
  const isDone = areChoresDone && areWorkersDone
  if (!isDone) log.warn('something is left under way: the node ends without a goodbye')
  await atMost(
    goodbyeMsMax,
    link.stop({ goodbye: isDone }).then(() => pool.end()),
  )
  log.info('stopped')
  return ending instanceof ConfigError || !isDone ? 1 : 0
}

/** False: it takes longer and is left. The process ends, and PostgreSQL finishes or undoes the statement. */
async function atMost(ms: number, work: Promise<void>): Promise<boolean> {
  return await Promise.race([work.then(() => true), delay(ms, false)])
}

/** The one setting that changes without a restart: what signs gossip, so that it can be replaced node by node. */
function renewSecret(link: ClusterLink, reload: () => Config, log: Logger): void {
  try {
    link.replaceSecret(reload().gossipSecret)
    log.info('the gossip secret was read anew')
  } catch (error) {
    log.error({ reason: (error as Error).message }, 'the old gossip secret stays')
  }
}

/** Later signals are heard and mean nothing new: npm and a terminal both send them. */
function untilSignal(...signals: readonly NodeJS.Signals[]): Promise<string> {
  return new Promise((resolve) => {
    for (const signal of signals) process.on(signal, () => resolve(signal))
    // Run by a supervisor with a channel to it, the node does not outlive it.
    process.on('disconnect', () => resolve('the supervisor is gone'))
  })
}
