import type { SharedStateStats } from '@rouse/shared-state'
import type { IdleGroup } from '@rouse/storage'
import type { Clock } from '../clock.ts'
import type { ClusterStats } from '../cluster/peer-stats.ts'
import type { Config } from '../config/config.ts'
import type { NodeConnections } from '../config/connections.ts'
import type { WorkerStats } from '../ipc.ts'
import type { EventStats } from '../observe/events/node-events.ts'
import type { QueueRate } from '../observe/node-activity.ts'
import type { IpcStats } from './worker-pool.ts'

export interface NodeStatsSources {
  readonly config: Config
  readonly connections: NodeConnections
  readonly access: string
  readonly shared: SharedStateStats
  readonly workerStats: ReadonlyMap<number, WorkerStats>
  readonly ipc: IpcStats
  readonly restarts: number
  readonly cluster: ClusterStats
  readonly time: Readonly<Record<string, unknown>>
  readonly holding: readonly IdleGroup[]
  readonly rates: readonly QueueRate[]
  readonly events: EventStats
  readonly uptimeMs: number
  readonly clock: Clock
}

/** The body of `/stats`. Worker stats are at most one second old. */
export function nodeStats({
  config,
  connections,
  access,
  shared,
  workerStats,
  ipc,
  restarts,
  cluster,
  time,
  holding,
  rates,
  events,
  uptimeMs,
  clock,
}: NodeStatsSources): Record<string, unknown> {
  const { mode, ...others } = shared
  const workers = [...workerStats]
  return {
    node: config.nodeId,
    uptime: Math.round(uptimeMs) / 1_000,
    workers: config.workers,
    access,
    connections_max: connections.node,
    ...others,
    mode: modeStats(mode, clock),
    waiting: {
      total: sum(workers.map(([, worker]) => worker.waiting)),
      by_worker: Object.fromEntries(workers.map(([id, worker]) => [id, worker.waiting])),
      by_queue: merge(workers.map(([, worker]) => worker.waitingByQueue)),
    },
    ipc,
    worker_restarts: restarts,
    ...cluster,
    time,
    queue_rates: rates,
    events,
    queue_defaults: config.queueDefaults,
    retention: { held_by: holding },
    pool: Object.fromEntries(workers.map(([id, worker]) => [id, worker.pool])),
    batches: batchSizes(workers.map(([, worker]) => worker)),
    queries: merge(workers.map(([, worker]) => worker.queries)),
    queries_per_second: merge(workers.map(([, worker]) => worker.queriesPerSecond)),
    requests: sum(workers.map(([, worker]) => worker.requests)),
    database_up: workers.every(([, worker]) => worker.databaseUp),
  }
}

function modeStats({ mode, since, why }: SharedStateStats['mode'], clock: Clock) {
  const ageMs = Math.round(clock.nowMs() - since)
  return { mode, since: new Date(clock.wallMs() - ageMs).toISOString(), sinceMs: ageMs, why }
}

function batchSizes(workers: readonly WorkerStats[]): Record<string, unknown> {
  const calls = merge(workers.map(({ batches }) => pick(batches, 'calls')))
  const requests = merge(workers.map(({ batches }) => pick(batches, 'requests')))
  return Object.fromEntries(
    Object.entries(calls).map(([kind, count]) => {
      const total = requests[kind] ?? 0
      return [kind, { calls: count, requests: total, mean: count === 0 ? 0 : total / count }]
    }),
  )
}

function pick(
  batches: WorkerStats['batches'],
  field: 'calls' | 'requests',
): Record<string, number> {
  return Object.fromEntries(Object.entries(batches).map(([kind, batch]) => [kind, batch[field]]))
}

function merge(records: readonly Readonly<Record<string, number>>[]): Record<string, number> {
  const merged: Record<string, number> = {}
  for (const record of records) {
    for (const [key, value] of Object.entries(record)) merged[key] = (merged[key] ?? 0) + value
  }
  return merged
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, number) => total + number, 0)
}
