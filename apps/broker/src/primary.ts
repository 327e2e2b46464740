// The primary of a node: it decides who is woken, keeps time, and keeps the workers alive. It serves no user.
import { createPool } from '@rouse/database'
import { systemClock } from './clock.ts'
import { ClusterLink } from './cluster/cluster-link.ts'
import type { Config } from './config.ts'
import { ConfigError } from './config-error.ts'
import { createLogger, type Logger } from './log.ts'
import { newMessageIds } from './message-ids.ts'
import { nodeStats } from './node-stats.ts'
import { prepareDatabase } from './prepare-database.ts'
import { createTimeServices, type TimeServices } from './services/time-services.ts'
import { SharedStateHost } from './shared-state-host.ts'
import { type ClusterIdentity, joinCluster } from './statements/nodes.ts'
import { writeNotifySetting } from './statements/notify-setting.ts'
import { WorkerProcesses } from './worker-processes.ts'

/** The fallback check, the list of nodes, the look for what is due, and four chores. LISTEN has its own beside them. */
const connectionsMax = 7
const drainMsMax = 9_500

/** Resolves with the exit code when the node has ended. `reload` reads the configuration anew. */
export async function runPrimary(config: Config, reload: () => Config): Promise<number> {
  const log = createLogger({ level: config.logLevel, node: config.nodeId, process: 'primary' })
  const stopped = untilSignal('SIGTERM', 'SIGINT')
  const applicationName = `rouse ${config.nodeId} primary`
  const pool = createPool({ url: config.databaseUrl, max: connectionsMax, applicationName })
  const startedAtMs = systemClock.nowMs()
  let identity: ClusterIdentity
  try {
    await prepareDatabase({ pool, config, log, stopped })
    identity = await joinCluster(pool)
    await writeNotifySetting(pool, config.notify === 'on')
  } catch (error) {
    log.fatal({ err: error }, 'the database could not be prepared')
    return 1
  }

  const workers: WorkerProcesses = new WorkerProcesses({
    count: config.workers,
    clock: systemClock,
    log,
    onMessages: (id, messages) => host.handle(id, messages),
    onReady: (url) => link.listening(url),
    onExit: (id, how) => host.workerGone(id, how),
  })
  const host = new SharedStateHost({
    config,
    clock: systemClock,
    log,
    pool,
    post: (id, message) => workers.post(id, message),
    peers: {
      broadcast: (hint, kind) => link.broadcast(hint, kind),
      interestChanged: () => link.interestChanged(),
      configured: (hint, version) => link.tellConfigured(hint, version),
    },
    time: {
      scheduled(queue, due) {
        const dueAtMs = time.timers.expectDue(due)
        if (dueAtMs !== undefined) link.tellScheduled(queue, dueAtMs)
      },
      look: () => time.timers.look(),
      popFoundNothing: () => time.timers.popFoundNothing(),
    },
    stats: (shared, figures) =>
      nodeStats({
        config,
        shared,
        figures,
        cluster: link.stats(),
        time: time.stats(),
        uptimeMs: systemClock.nowMs() - startedAtMs,
        clock: systemClock,
      }),
  })
  const link: ClusterLink = new ClusterLink({
    config,
    identity,
    pool,
    clock: systemClock,
    log,
    events: {
      onHint: (hint) => host.heard(hint),
      onEverything: () => host.heardEverything(),
      onScheduled: (dueAtMs) => time.timers.expect(dueAtMs),
      onSilentPeers: (areSilent) => host.peersAreSilent(areSilent),
      onInterestEchoed: (version) => host.interestEchoed(version),
      interests: () => host.interests(),
    },
  })
  const time: TimeServices = createTimeServices({
    config,
    pool,
    log,
    clock: systemClock,
    random: Math.random,
    newMessageId: newMessageIds(),
    host,
  })

  try {
    await link.start()
  } catch (error) {
    log.fatal({ err: error }, 'gossip could not start')
    return 1
  }
  process.on('SIGHUP', () => renewSecret(link, reload, log))
  const failed = workers.start()
  await time.start()
  const reason = await Promise.race([stopped, failed])
  if (reason instanceof ConfigError) log.fatal(reason.message)
  else log.info({ signal: reason }, 'draining')
  await time.stop()
  await workers.drain(drainMsMax)
  await link.stop()
  host.stop()
  await pool.end()
  log.info('stopped')
  return reason instanceof ConfigError ? 1 : 0
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
