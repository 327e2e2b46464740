// Promise 2: every pushed message is delivered to every group until it is acknowledged or becomes a dead
// letter.
//
// A group that subscribed during the run must get the messages of its subscription. Messages that a purge or
// seek may have skipped, or that retention may have removed, are excused. After a seek back, all messages
// from the new position of the group on must be delivered again.
import type { History } from '../../history/history.ts'
import type { Delivery, Message } from '../../history/history-views.ts'
import type { QueueRecord } from '../../history/records.ts'
import { deliveriesByGroup, isStored, mayBeRedriven, moves } from '../certainty.ts'
import { deadLetters } from '../dead-letter-index.ts'
import { Findings } from '../findings.ts'
import { Eviction } from './eviction.ts'
import { ghostsOf } from './ghosts.ts'
import { lastSeek, mustGet, pushedFrom, sentBackTo } from './subscriptions.ts'

export function lost(history: History): Findings {
  const findings = new Findings()
  const letters = deadLetters(history)
  const eviction = new Eviction(history)
  const undrained = new Set(
    history.audit?.undrained.map(({ queue, group }) => JSON.stringify([queue, group])),
  )
  for (const message of history.messages()) {
    const queue = history.queues.get(message.queue)
    if (queue === undefined) continue
    const stored = isStored(message)
    if (!stored && message.deliveries.length === 0) continue
    const groups = deliveriesByGroup(message)
    for (const group of new Set([
      ...queue.groups,
      ...groups.keys(),
      ...newGroups(history, queue),
    ])) {
      // A message that is still in the queue is late, not lost: left-over.ts reports it.
      if (undrained.has(JSON.stringify([message.queue, group]))) continue
      if (letters.has(message, group) || mayBeCancelled(history, message)) continue
      const problem = lossOf(history, message, { queue, group, stored, eviction })
      if (problem !== undefined) findings.add(`${nameOf(message)} was ${problem}`, message)
    }
  }
  return findings
}

interface Checked {
  readonly queue: QueueRecord
  readonly group: string
  readonly stored: boolean
  readonly eviction: Eviction
}

function lossOf(history: History, message: Message, checked: Checked): string | undefined {
  const { queue, group, stored, eviction } = checked
  const place = { queue: queue.queue, group }
  const deliveries = message.deliveries.filter((delivery) => delivery.group === group)
  const seek = lastSeek(history, place)
  const back = seek !== undefined && sentBackTo(message, seek)
  if (back && !deliveries.some(({ end }) => end > seek.start)) {
    return `not delivered again to ${group} after a seek back`
  }
  const seenFrom = Math.max(pushedFrom(message), ...deliveries.map(({ begins }) => begins))
  if (history.operations.touch(moves, place, seenFrom, Number.POSITIVE_INFINITY)) return undefined
  if (deliveries.length === 0) {
    const expected = stored && mustGet(history, queue, group, message)
    return expected && !eviction.excuses(message, group) ? `never delivered to ${group}` : undefined
  }
  if (queue.retentionMs !== undefined || mayHaveEnded(history, deliveries, queue)) return undefined
  if (areGhosts(history, message, deliveries)) return undefined
  return `delivered to ${group}, not acknowledged, and never delivered again`
}

/** Whether a copy of the message was cancelled, or may have been. */
function mayBeCancelled({ cancels }: History, { pushes }: Message): boolean {
  return pushes.some(({ id }) => cancels.has(id))
}

function newGroups(history: History, { queue }: QueueRecord): Iterable<string> {
  return history.operations.subscriptions(queue).keys()
}

/**
 * Whether one of the deliveries can have been the last one of the message. A redriven dead letter is not
 * finished.
 */
function mayHaveEnded(
  history: History,
  deliveries: readonly Delivery[],
  { retryLimit }: QueueRecord,
): boolean {
  return deliveries.some((delivery) =>
    delivery.acks.some(({ status, taken, start }) => {
      if (taken === 'no') return false
      if (status === 'completed') return true
      const givesUp = status === 'dlq' || (status === 'failed' && delivery.attempt > retryLimit)
      return givesUp && !mayBeRedriven(history, delivery, start)
    }),
  )
}

function areGhosts(history: History, message: Message, deliveries: readonly Delivery[]): boolean {
  const ghosts = ghostsOf(history, message)
  return deliveries.every(({ id }) => ghosts.has(id))
}

function nameOf({ queue, value }: Message): string {
  return `${value} of ${queue}`
}
