// Composes a primary: the workers, the SharedStateManager, the link to peers, and the scheduler.

import { createMessageIds } from '@rouse/protocol'
import type { ClusterIdentity, KeyTable } from '@rouse/storage'
import type pg from 'pg'
import { IssuerKeys } from '../auth/oidc/issuer-keys.ts'
import { idSources, systemClock } from '../clock.ts'
import { countLive } from '../cluster/cluster-stats.ts'
import { ClusterLink } from '../cluster/link.ts'
import type { Config } from '../config/config.ts'
import { ConfigError } from '../config/config-error.ts'
import { type NodeConnections, workerEnvironment } from '../config/connections.ts'
import type { Logger } from '../log.ts'
import { NodeEvents } from '../observe/events/node-events.ts'
import type { NodeActivity } from '../observe/node-activity.ts'
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
  readonly issuer: IssuerKeys
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
  readonly activity: NodeActivity
  /** Called once, when the node serves requests. */
  readonly onReady: () => void
}

/** Creates the parts without starting them. */
export function createNodeParts(options: NodePartsOptions): NodeParts {
  const { config, identity, connections, pool, log, activity, onReady } = options
  const clock = systemClock
  const startedAtMs = clock.nowMs()
  const workers = new WorkerProcesses({
    count: config.workers,
    env: workerEnvironment(config, connections),
    clock,
    log,
    onReady,
    onRestart: (worker, reason) => reportRestart(events, config.nodeId, worker, reason),
  })
  const events = createEvents(config, workers)
  const { keys, issuer } = createReaders(options, workers, () => link)
  const host = new SharedStateHost({
    config,
    clock,
    log,
    pool,
    workers,
    keys,
    issuer,
    activity,
    events,
    stats(shared, workerStats) {
      const parts = {
        shared,
        workerStats,
        uptimeMs: clock.nowMs() - startedAtMs,
        ipc: workers.ipcStats(),
        restarts: workers.restarts,
        cluster: link.stats(),
        ...time.stats(),
        rates: activity.rates(),
        events: events.stats(),
      }
      const access = accessOf(config, keys.hasKeys)
      return nodeStats({ config, connections, access, ...parts, clock })
    },
  })
  const sources = { random: Math.random, newMessageId: createMessageIds(idSources) }
  const time = createTimeServices({ config, pool, log, clock, host, activity, ...sources })
  let supersede: (error: ConfigError) => void = () => {}
  const superseded = new Promise<ConfigError>((resolve) => {
    supersede = resolve
  })
  const link = new ClusterLink({
    config,
    identity,
    pool,
    clock,
    log,
    host,
    timers: time.timers,
    events,
    keys,
    onSuperseded({ id, gossipAddress }) {
      log.info({ gossip: gossipAddress }, 'another process with this node id started later')
      supersede(sharedId(id, gossipAddress))
    },
  })
  host.connect({ link, timers: time.timers })
  return { workers, host, link, time, keys, issuer, superseded }
}

/** What the workers need to know to check credentials. */
function createReaders(
  { config, pool, log, keyTable }: NodePartsOptions,
  workers: WorkerProcesses,
  link: () => ClusterLink,
): Pick<NodeParts, 'keys' | 'issuer'> {
  const shared = { log, clock: systemClock, workers }
  const keys = new KeyReader({
    ...shared,
    pool,
    liveNodes: () => countLive(link().stats().peers),
    announce: () => link().tellKeysChanged(),
    table: keyTable,
  })
  return { keys, issuer: new IssuerKeys({ ...shared, issuer: config.oidcIssuer }) }
}

function createEvents({ nodeId: node }: Config, workers: WorkerProcesses): NodeEvents {
  return new NodeEvents({ ...systemClock, node, post: (id, message) => workers.post(id, message) })
}

function reportRestart(events: NodeEvents, node: string, worker: number, reason: string): void {
  const text = `Worker ${worker} of ${node} ended (${reason}), and another one was started.`
  events.clusterChanged('worker_restarted', text, { worker, reason })
}

/** Two processes with one id ignore each other and look healthy, but hints reach only one of them. */
function sharedId(id: string, gossipAddress: string): ConfigError {
  const problem =
    `is ${JSON.stringify(id)} here and in another process that started later (gossip address ${gossipAddress}): ` +
    'give every node a unique id. This node stops'
  return new ConfigError('ROUSE_NODE_ID', problem)
}
