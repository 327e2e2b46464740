// What happens in queues right now, on all nodes that answer: this is in the memory of the nodes, not in the
// database. The nodes are asked over HTTP, and only while this is read: a cluster without readers exchanges
// nothing.
import type { QueueRate } from '../observe/node-activity.ts'
import type { BrokerContext } from '../worker/context.ts'
import { askingAs, clusterStats } from './cluster-stats.ts'

/** Waiting pops by queue; pops of a namespace or task are counted under `namespace:task`. */
export type WaitingByQueue = Readonly<Record<string, number>>

export interface QueueActivity {
  readonly waiting: WaitingByQueue
  /** By queue, summed over the nodes. A queue without a rate is idle. */
  readonly rates: ReadonlyMap<string, QueueRate>
}

export interface NodeStats {
  readonly waiting: { readonly by_queue?: WaitingByQueue }
  /** Absent on nodes of earlier releases. */
  readonly queue_rates?: readonly QueueRate[]
}

/**
 * A list of queues is often read every second by several dashboards, and each node is asked only once. Workers
 * report to their primaries every second, so rates are less than 2 seconds old.
 */
const freshMs = 750

/** Returns a function that reads the activity. */
export function createQueueActivity({
  stats,
  clock,
  nodeAuthorization,
}: Pick<BrokerContext, 'stats' | 'clock' | 'nodeAuthorization'>): () => Promise<QueueActivity> {
  let last: { readonly atMs: number; readonly activity: Promise<QueueActivity> } | undefined

  async function read(): Promise<QueueActivity> {
    const { nodes } = await clusterStats(await stats(), askingAs(nodeAuthorization))
    return activityOf(nodes as readonly NodeStats[])
  }

  return () => {
    const nowMs = clock.nowMs()
    if (last !== undefined && nowMs - last.atMs < freshMs) return last.activity
    const activity = read()
    last = { atMs: nowMs, activity }
    activity.catch(() => (last = undefined))
    return activity
  }
}

export function activityOf(nodes: readonly NodeStats[]): QueueActivity {
  return {
    waiting: sumByName(nodes.map(({ waiting }) => waiting.by_queue ?? {})),
    rates: sumRates(nodes.flatMap(({ queue_rates: rates = [] }) => rates)),
  }
}

function sumByName(records: readonly WaitingByQueue[]): WaitingByQueue {
  const sums: Record<string, number> = Object.create(null) as Record<string, number>
  for (const record of records) {
    for (const [name, count] of Object.entries(record)) sums[name] = (sums[name] ?? 0) + count
  }
  return sums
}

function sumRates(rates: readonly QueueRate[]): Map<string, QueueRate> {
  const sums = new Map<string, QueueRate>()
  for (const rate of rates) {
    const { queue } = rate
    sums.set(queue, { queue, ...addRates(sums.get(queue) ?? noRate, rate) })
  }
  return sums
}

export type Rate = Omit<QueueRate, 'queue'>

/** Nodes of earlier releases report fewer fields. */
export function addRates(a: Rate, b: Partial<Rate>): Rate {
  const { lastSecond = noRate.lastSecond } = b
  return {
    pushedPerSecond: tenths(a.pushedPerSecond + (b.pushedPerSecond ?? 0)),
    deliveredPerSecond: tenths(a.deliveredPerSecond + (b.deliveredPerSecond ?? 0)),
    completedPerSecond: tenths(a.completedPerSecond + (b.completedPerSecond ?? 0)),
    failedPerSecond: tenths(a.failedPerSecond + (b.failedPerSecond ?? 0)),
    lastSecond: {
      pushed: a.lastSecond.pushed + lastSecond.pushed,
      delivered: a.lastSecond.delivered + lastSecond.delivered,
      completed: a.lastSecond.completed + lastSecond.completed,
      failed: a.lastSecond.failed + lastSecond.failed,
    },
  }
}

export const noRate: Rate = {
  pushedPerSecond: 0,
  deliveredPerSecond: 0,
  completedPerSecond: 0,
  failedPerSecond: 0,
  lastSecond: { pushed: 0, delivered: 0, completed: 0, failed: 0 },
}

function tenths(rate: number): number {
  return Math.round(rate * 10) / 10
}

/** The pops that wait for messages of a queue, under its name, its namespace or its task. */
export function waitingFor(
  waiting: WaitingByQueue,
  place: {
    readonly queue: string
    readonly namespace: string | null
    readonly task: string | null
  },
): number {
  const { queue, namespace, task } = place
  const keys = [
    queue,
    ...(namespace === null ? [] : [`${namespace}:*`]),
    ...(task === null ? [] : [`*:${task}`]),
    ...(namespace === null || task === null ? [] : [`${namespace}:${task}`]),
  ]
  return keys.reduce((sum, key) => sum + (waiting[key] ?? 0), 0)
}
