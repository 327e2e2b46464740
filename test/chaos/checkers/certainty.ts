// What is certain about deliveries of one message to one group: their order, and when each was over.
import type { History } from '../history/history.ts'
import type { Acked, Delivery, Message } from '../history/history-views.ts'
import type { OperationKind } from '../history/operations.ts'

/** After these operations attempts count from one again. */
export const restarts: readonly OperationKind[] = ['seek', 'redrive']
/** These operations skip messages and end their leases. */
export const moves: readonly OperationKind[] = ['purge', 'seek']

/** Whether a push certainly stored the message. Without a dedupe key, a duplicate is one of another message. */
export function isStored({ pushes }: Message): boolean {
  return pushes.some(
    ({ outcome, status, key }) => outcome === 'ok' && (status !== 'duplicate' || key >= 0),
  )
}

/** The deliveries of one message by group, in the order of their responses. */
export function deliveriesByGroup({ deliveries }: Message): Map<string, Delivery[]> {
  const groups = new Map<string, Delivery[]>()
  for (const delivery of deliveries) {
    const list = groups.get(delivery.group)
    if (list === undefined) groups.set(delivery.group, [delivery])
    else list.push(delivery)
  }
  return groups
}

/**
 * Whether `later` was certainly leased after `earlier`. Either the clock shows it, or the attempt number,
 * which only grows unless the database forgot a lease or an operator reset the count.
 */
export function surelyBefore(history: History, earlier: Delivery, later: Delivery): boolean {
  if (earlier.end < later.begins) return true
  if (later.attempt <= earlier.attempt) return false
  const from = Math.min(earlier.begins, later.begins)
  const to = Math.max(earlier.end, later.end)
  return !history.forgets(from, to) && !history.operations.touch(restarts, earlier, from, to)
}

/** The earliest time at which an ack may have ended the delivery. */
export function ackedMin({ acks }: Delivery): number {
  return earliest(acks.filter(({ taken }) => taken !== 'no'))
}

/** The earliest time at which the lease may no longer have covered the message. */
export function endsMin(delivery: Delivery): number {
  return Math.min(delivery.expiresMin, delivery.releasedMin, ackedMin(delivery))
}

/** An accepted ack that completed the message. */
export function completion({ acks }: Delivery): Acked | undefined {
  return acks.find(({ status, taken }) => status === 'completed' && taken === 'yes')
}

/** Whether an operator may have redriven the message after it became a dead letter at `givenUp`. */
export function mayBeRedriven(history: History, delivery: Delivery, givenUp: number): boolean {
  return history.operations.touch(['redrive'], delivery, givenUp, Number.POSITIVE_INFINITY)
}

/** Sorts by attempt, then by time. */
export function byAttempt(a: Delivery, b: Delivery): number {
  return a.attempt - b.attempt || a.end - b.end
}

function earliest(acks: readonly Acked[]): number {
  return acks.reduce((least, { start }) => Math.min(least, start), Number.POSITIVE_INFINITY)
}
