// What can be concluded about two deliveries of one message to one group, and when one was over.
import type { History } from '../history/history.ts'
import type { Acked, Delivery, Message } from '../history/history-views.ts'
import type { OperationKind } from '../history/operations.ts'

/** After these a message's attempts are counted from one again. */
export const restarts: readonly OperationKind[] = ['seek', 'redrive']
/** These pass messages over, and end their leases. */
export const moves: readonly OperationKind[] = ['purge', 'seek']

/** The deliveries of one message, by group, each list in the order in which its answers came. */
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
 * Whether one was leased after the other beyond doubt: by the clock, or by the attempt, which only ever grows
 * unless the database forgot, or an operator let it be counted from one again.
 */
export function surelyBefore(history: History, earlier: Delivery, later: Delivery): boolean {
  if (earlier.end < later.begins) return true
  if (later.attempt <= earlier.attempt) return false
  const from = Math.min(earlier.begins, later.begins)
  const to = Math.max(earlier.end, later.end)
  return !history.forgets(from, to) && !history.operations.touch(restarts, earlier, from, to)
}

/** The earliest moment at which an acknowledgement may have ended the delivery. */
export function ackedMin({ acks }: Delivery): number {
  return earliest(acks.filter(({ taken }) => taken !== 'no'))
}

/** The earliest moment at which its message may have been no longer under this lease. */
export function endsMin(delivery: Delivery): number {
  return Math.min(delivery.expiresMin, delivery.releasedMin, ackedMin(delivery))
}

/** An acknowledgement that was taken and ended the message for good. */
export function completion({ acks }: Delivery): Acked | undefined {
  return acks.find(({ status, taken }) => status === 'completed' && taken === 'yes')
}

/** Whether an operator may have had it delivered again after it was given up at that time. */
export function mayBeRedriven(history: History, delivery: Delivery, givenUp: number): boolean {
  return history.operations.touch(['redrive'], delivery, givenUp, Number.POSITIVE_INFINITY)
}

/** Two deliveries of different moments, the earlier by attempt first. */
export function byAttempt(a: Delivery, b: Delivery): number {
  return a.attempt - b.attempt || a.end - b.end
}

function earliest(acks: readonly Acked[]): number {
  return acks.reduce((least, { start }) => Math.min(least, start), Number.POSITIVE_INFINITY)
}
