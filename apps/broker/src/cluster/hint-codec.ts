// Translates between wake hints and gossip, which knows nothing about queues. A node announces the keys of
// its own waiters, each with their consumer group, as its interests. A hint has the keys of all waiters that
// it may wake:
//
//   q/orders                    waiters for a queue, or for one partition of it
//   namespace/shop/task/mail    waiters for a namespace and a task; `*` stands for any
//   end/orders                  requests that wait for a message of a queue to end

import type { Hint as GossipHint, OutgoingHint } from '@rouse/gossip'
import { completionGroup, isCompletionGroup, type WaitGroup, type WakeHint } from '@rouse/protocol'
import { sharedSelector } from '@rouse/shared-state'

/** The kinds of queue hints: messages are available, a lane is free, the options have changed. */
export type QueueHintKind = 'MESSAGE_AVAILABLE' | 'PARTITION_FREE' | 'QUEUE_CONFIG_CHANGED'

/** The interest key of a wait group. */
export function interestKey({ source, group }: WaitGroup): string {
  if ('queue' in source && isCompletionGroup(group)) return endKey(source.queue)
  return 'queue' in source ? queueKey(source.queue) : sharedSelector(source.namespace, source.task)
}

/** What peers know about a wait group. The completion groups of all workers are one. */
export function interestOf(one: WaitGroup): { readonly scope: string; readonly group: string } {
  const group = isCompletionGroup(one.group) ? completionGroup : one.group
  return { scope: interestKey(one), group }
}

/**
 * With `isOneFirst`, one peer gets the hint before the others. A hint about the end of messages is for all peers
 * that wait for one: they wait for different messages.
 */
export function toGossip(kind: QueueHintKind, hint: WakeHint, isOneFirst = false): OutgoingHint {
  const { queue, partition, group, namespace, task, count } = hint
  return {
    kind,
    scope: queue,
    part: partition ?? undefined,
    count: count ?? 0,
    labels: [group ?? null, ...(hasPlace(hint) ? [namespace ?? null, task ?? null] : [])],
    // Nodes also cache options of queues without local waiters, so this hint goes to every node.
    keys: kind === 'QUEUE_CONFIG_CHANGED' ? undefined : keysOf(hint),
    group: group ?? undefined,
    spread: isOneFirst && !isCompletionGroup(group ?? '') ? 'one' : 'all',
  }
}

export function fromGossip({ kind, scope, part, count, labels = [] }: GossipHint): WakeHint {
  const [group = null, namespace, task] = labels
  const place = labels.length < 3 ? {} : { namespace: namespace ?? null, task: task ?? null }
  // Count 0 means unknown. A free lane or new options release an unknown number of messages. A hint without
  // labels seems to be for all consumer groups, but may have been for one of them.
  const known = kind === 'MESSAGE_AVAILABLE' && labels.length > 0 ? count : 0
  return { queue: scope, partition: part ?? null, group, ...place, count: known }
}

/** Undefined if the hint may wake any waiter. */
export function keysOf(hint: WakeHint): string[] | undefined {
  const { queue, namespace, task, group } = hint
  if (isCompletionGroup(group ?? '')) return [endKey(queue)]
  if (!hasPlace(hint)) return undefined
  const keys = [queueKey(queue)]
  // A pop for a namespace gets no messages of queues without a namespace.
  for (const n of [namespace ?? undefined, undefined]) {
    for (const t of [task ?? undefined, undefined]) keys.push(sharedSelector(n, t))
  }
  return [...new Set(keys)]
}

function hasPlace({ namespace, task }: WakeHint): boolean {
  return namespace !== undefined && task !== undefined
}

function endKey(queue: string): string {
  return `end/${queue}`
}

function queueKey(queue: string): string {
  return `q/${queue}`
}
