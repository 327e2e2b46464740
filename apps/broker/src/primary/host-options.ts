// What the SharedStateHost is made of: its options, the parts that it talks to, and the settings of its manager.
import type { SharedStateManager, SharedStateStats } from '@rouse/shared-state'
import type pg from 'pg'
import type { IssuerKeys } from '../auth/oidc/issuer-keys.ts'
import type { Clock } from '../clock.ts'
import type { ClusterLink } from '../cluster/link.ts'
import type { Config } from '../config/config.ts'
import type { WorkerStats } from '../ipc.ts'
import type { Logger } from '../log.ts'
import type { NodeEvents } from '../observe/events/node-events.ts'
import type { Timers } from '../scheduler/timers.ts'
import type { KeyReader } from './key-reader.ts'
import type { WorkerProcesses } from './worker-pool.ts'
import type { WorkerReportsOptions } from './worker-reports.ts'

export interface SharedStateHostOptions {
  readonly config: Config
  readonly clock: Clock
  readonly log: Logger
  readonly pool: pg.Pool
  readonly workers: Pick<WorkerProcesses, 'post' | 'postAll'>
  readonly keys: Pick<KeyReader, 'received'>
  readonly issuer: Pick<IssuerKeys, 'received'>
  readonly activity: WorkerReportsOptions['activity']
  readonly events: NodeEvents
  readonly stats: (
    shared: SharedStateStats,
    workerStats: ReadonlyMap<number, WorkerStats>,
  ) => Readonly<Record<string, unknown>>
}

/** The parts of a node that call the host and that the host calls. */
export interface HostPartners {
  readonly link: Omit<ClusterLink, 'start' | 'stop' | 'stats' | 'replaceSecret'>
  readonly timers: Pick<
    Timers,
    'expect' | 'expectDue' | 'pollDueTimes' | 'popFoundNothing' | 'databaseAheadMs'
  >
}

/** A waiter may be alone in its wait group and may just have left another group. Both groups count. */
const groupsPerWaiter = 2

/** The settings of the SharedStateManager. */
export function managerSettings(
  config: Config,
): ConstructorParameters<typeof SharedStateManager>[1] {
  return {
    baseIntervalMs: config.popWaitBaseIntervalMs,
    maxIntervalMs: config.popWaitMaxIntervalMs,
    backoffThreshold: config.popWaitBackoffThreshold,
    backoffMultiplier: config.popWaitBackoffMultiplier,
    idleIntervalMs: config.popWaitIdleIntervalMs,
    completionIntervalMs: config.popWaitIdleIntervalMs / 5,
    emptyTrustedMs: config.popWaitIdleIntervalMs * 6,
    verifyAfterMs: config.popWaitIdleIntervalMs / 5,
    holdHintMs: config.popWaitLocalFirstMs,
    aggressivePollDurationMs: config.aggressivePollDurationMs,
    aggressiveExitThreshold: config.aggressiveExitThreshold,
    deliveryTimeoutMs: config.notifyDeliveryTimeoutMs,
    groupsMax: groupsPerWaiter * config.workers * config.waitersMax,
  }
}
