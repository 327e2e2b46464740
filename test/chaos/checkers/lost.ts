// Promise 2: what was pushed is delivered to every group until it is acknowledged or among the dead letters.
import type { History } from '../history.ts'
import type { Delivery, Message } from '../history-views.ts'
import type { QueueRecord } from '../records.ts'
import { deliveriesByGroup } from './certainty.ts'
import { deadLetters } from './dead-letter-index.ts'
import { Findings } from './findings.ts'
import { ghostsOf } from './ghosts.ts'

export function lost(history: History): Findings {
  const findings = new Findings()
  const letters = deadLetters(history)
  const undrained = new Set(
    history.audit?.undrained.map(({ queue, group }) => JSON.stringify([queue, group])),
  )
  for (const message of history.messages()) {
    const queue = history.queues.get(message.queue)
    if (queue === undefined) continue
    const stored = message.pushes.some(({ outcome }) => outcome === 'ok')
    if (!stored && message.deliveries.length === 0) continue
    const groups = deliveriesByGroup(message)
    for (const group of queue.groups) {
      // What is still in the queue is not lost, only late: left-over.ts says so.
      if (undrained.has(JSON.stringify([message.queue, group]))) continue
      if (letters.has(message, group)) continue
      const deliveries = groups.get(group) ?? []
      if (deliveries.length === 0) {
        if (stored) findings.add(`${nameOf(message)} was never delivered to ${group}`, message)
      } else if (!mayHaveEnded(deliveries, queue) && !areGhosts(history, message, deliveries)) {
        findings.add(
          `${nameOf(message)} was delivered to ${group}, not ended, and never came again`,
          message,
        )
      }
    }
  }
  return findings
}

/** Whether any of its deliveries can have been the last one. */
function mayHaveEnded(deliveries: readonly Delivery[], { retryLimit }: QueueRecord): boolean {
  return deliveries.some((delivery) =>
    delivery.acks.some(({ status, taken }) => {
      if (taken === 'no') return false
      return (
        status === 'completed' ||
        status === 'dlq' ||
        (status === 'failed' && delivery.attempt > retryLimit)
      )
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
