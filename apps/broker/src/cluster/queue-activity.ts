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

interface NodeStats {
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
    const answers = nodes as readonly NodeStats[]
    return {
      waiting: sumByName(answers.map(({ waiting }) => waiting.by_queue ?? {})),
      rates: sumRates(answers.flatMap(({ queue_rates: rates = [] }) => rates)),
    }
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
    const { pushedPerSecond, completedPerSecond } = sums.get(queue) ?? noRate
    sums.set(queue, {
      queue,
      pushedPerSecond: tenths(pushedPerSecond + rate.pushedPerSecond),
      completedPerSecond: tenths(completedPerSecond + rate.completedPerSecond),
    })
  }
  return sums
}

export const noRate = { pushedPerSecond: 0, completedPerSecond: 0 } as const

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
