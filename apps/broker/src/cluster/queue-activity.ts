// What happens in queues right now, on all nodes that answer: this is in the memory of the nodes, not in the
// database.
import type { BrokerContext } from '../worker/context.ts'
import { askingAs, clusterStats } from './cluster-stats.ts'

/** Waiting pops by queue; pops of a namespace or task are counted under `namespace:task`. */
export type WaitingByQueue = Readonly<Record<string, number>>

interface NodeStats {
  readonly waiting: { readonly by_queue?: WaitingByQueue }
}

/** A list of queues is often read every second by several dashboards, and each node is asked only once. */
const freshMs = 1_000

/** Returns a function that reads the activity; it is at most about a second old. */
export function createQueueActivity({
  stats,
  clock,
  nodeAuthorization,
}: Pick<BrokerContext, 'stats' | 'clock' | 'nodeAuthorization'>): () => Promise<WaitingByQueue> {
  let last: { readonly atMs: number; readonly activity: Promise<WaitingByQueue> } | undefined

  async function read(): Promise<WaitingByQueue> {
    const { nodes } = await clusterStats(await stats(), askingAs(nodeAuthorization))
    return sumByName((nodes as readonly NodeStats[]).map(({ waiting }) => waiting.by_queue ?? {}))
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
