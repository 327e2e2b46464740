// Composes a primary: the workers, the SharedStateManager, the link to peers, and the scheduler.

import type { ClusterIdentity, KeyTable } from '@rouse/storage'
import type pg from 'pg'
import { systemClock } from '../clock.ts'
import { countLive } from '../cluster/cluster-stats.ts'
import { ClusterLink } from '../cluster/link.ts'
import type { Config } from '../config/config.ts'
import { ConfigError } from '../config/config-error.ts'
import { type NodeConnections, workerEnvironment } from '../config/connections.ts'
import type { Logger } from '../log.ts'
import { newMessageIds } from '../message-ids.ts'
import { NodeActivity } from '../observe/node-activity.ts'
import { createTimeServices, type TimeServices } from '../scheduler/scheduler.ts'
import { accessOf } from './closed-start.ts'
import { KeyReader } from './key-reader.ts'
import { nodeStats } from './node-stats.ts'
import { SharedStateHost } from './shared-state-host.ts'
import { WorkerProcesses } from './worker-pool.ts'

export interface NodeParts {
  readonly workers: WorkerProcesses
  readonly host: SharedStateHost
  readonly link: ClusterLink
  readonly time: TimeServices
  readonly keys: KeyReader
  /** Resolves only if a process that started later uses the same node id. */
  readonly superseded: Promise<ConfigError>
}

export interface NodePartsOptions {
  readonly config: Config
  readonly identity: ClusterIdentity
  readonly connections: NodeConnections
  readonly keyTable: KeyTable
  readonly pool: pg.Pool
  readonly log: Logger
  /** Called once, when the node serves requests. */
  readonly onReady: () => void
}

/** Creates the parts without starting them. */
export function createNodeParts(options: NodePartsOptions): NodeParts {
  const { config, identity, connections, keyTable, pool, log, onReady } = options
  const clock = systemClock
  const startedAtMs = clock.nowMs()
  const workers = new WorkerProcesses({
    count: config.workers,
    env: workerEnvironment(config, connections),
    clock,
    log,
    onReady,
  })
  const keys = new KeyReader({
    pool,
    log,
    clock,
    workers,
    liveNodes: () => countLive(link.stats().peers),
    table: keyTable,
  })
  const { nowMs, wallMs } = clock
  const activity = new NodeActivity({ nowMs, wallMs, namedQueuesMax: config.metricsQueuesMax })
  const host = new SharedStateHost({
    config,
    clock,
    log,
    pool,
    workers,
    keys,
    activity,
    stats(shared, workerStats) {
      const uptimeMs = clock.nowMs() - startedAtMs
      const ipc = workers.ipcStats()
      const parts = {
        shared,
        workerStats,
        ipc,
        restarts: workers.restarts,
        cluster: link.stats(),
        ...time.stats(),
        rates: activity.rates(),
      }
      const access = accessOf(config, keys.hasKeys)
      return nodeStats({ config, connections, access, ...parts, uptimeMs, clock })
    },
  })
  const sources = { random: Math.random, newMessageId: newMessageIds() }
  const time = createTimeServices({ config, pool, log, clock, host, activity, ...sources })
  let supersede: (error: ConfigError) => void = () => {}
  const superseded = new Promise<ConfigError>((resolve) => {
    supersede = resolve
  })
  const { timers } = time
  const link = new ClusterLink({
    config,
    identity,
    pool,
    clock,
    log,
    host,
    timers,
    onSuperseded({ id, gossipAddress }) {
      log.info({ gossip: gossipAddress }, 'another process with this node id started later')
      supersede(sharedId(id, gossipAddress))
    },
  })
  host.connect({ link, timers })
  return { workers, host, link, time, keys, superseded }
}

/** Two processes with one id ignore each other and look healthy, but hints reach only one of them. */
function sharedId(id: string, gossipAddress: string): ConfigError {
  const problem =
    `is ${JSON.stringify(id)} here and in another process that started later (gossip address ${gossipAddress}): ` +
    'give every node a unique id. This node stops'
  return new ConfigError('ROUSE_NODE_ID', problem)
}
