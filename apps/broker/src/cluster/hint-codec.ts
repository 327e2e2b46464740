// What the wake path says, in the words of gossip, which knows nothing of queues. A hint travels with the keys of
// everything that may wait for it, and a node tells its peers the keys of what it waits for:
//
//   q/orders                    waiters for a queue, or for one partition of it
//   namespace/shop/task/mail    waiters for a namespace and a task, with a star where one is not given

import type { Hint as GossipHint, OutgoingHint } from '@rouse/gossip'
import type { WaitGroup, WakeHint } from '@rouse/protocol'
import { sharedSelector } from '@rouse/shared-state'

/** What is said of a queue: there are messages, a lane opened, its options have changed. */
export type QueueHintKind = 'MESSAGE_AVAILABLE' | 'PARTITION_FREE' | 'QUEUE_CONFIG_CHANGED'

/** What one group of waiters waits for. */
export function interestKey({ source }: WaitGroup): string {
  return 'queue' in source ? queueKey(source.queue) : sharedSelector(source.namespace, source.task)
}

export function toGossip(kind: QueueHintKind, hint: WakeHint): OutgoingHint {
  const { queue, partition, group, namespace, task, count } = hint
  return {
    kind,
    scope: queue,
    part: partition ?? undefined,
    count: count ?? 1,
    labels: [group ?? null, ...(hasPlace(hint) ? [namespace ?? null, task ?? null] : [])],
    // Nodes remember options of queues that nobody waits for there: news of them goes to all.
    keys: kind === 'QUEUE_CONFIG_CHANGED' ? undefined : keysOf(hint),
  }
}

export function fromGossip({ kind, scope, part, count, labels = [] }: GossipHint): WakeHint {
  const [group = null, namespace, task] = labels
  const place = labels.length < 3 ? {} : { namespace: namespace ?? null, task: task ?? null }
  // What a free lane or new options let go, nobody has counted. Nor is it known of a hint that lost its labels on the
  // way: it may have told of lanes of one group, and now seems to tell of messages for all.
  const known = kind === 'MESSAGE_AVAILABLE' && labels.length > 0 ? count : 0
  return { queue: scope, partition: part ?? null, group, ...place, count: known }
}

/** Undefined: anybody may wait for it. */
export function keysOf(hint: WakeHint): string[] | undefined {
  const { queue, namespace, task } = hint
  if (!hasPlace(hint)) return undefined
  const keys = [queueKey(queue)]
  // Who asks for a namespace does not get queues without one.
  for (const n of [namespace ?? undefined, undefined]) {
    for (const t of [task ?? undefined, undefined]) keys.push(sharedSelector(n, t))
  }
  return [...new Set(keys)]
}

function hasPlace({ namespace, task }: WakeHint): boolean {
  return namespace !== undefined && task !== undefined
}

function queueKey(queue: string): string {
  return `q/${queue}`
}
