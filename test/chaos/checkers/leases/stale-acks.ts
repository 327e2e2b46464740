// Promise 3: an acknowledgement under a lease that is over is refused. Over it is, beyond doubt, when before the ack was sent
// - the lease must have run out, or its release was answered;
// - somebody else had been handed the message after it;
// - another acknowledgement under the same token had been taken.
import type { History } from '../../history/history.ts'
import type { Acked, Delivery } from '../../history/history-views.ts'
import { deliveriesByGroup, surelyBefore } from '../certainty.ts'
import { Findings } from '../findings.ts'

export function staleAcks(history: History): Findings {
  const findings = new Findings()
  for (const message of history.messages()) {
    for (const deliveries of deliveriesByGroup(message).values()) {
      for (const delivery of deliveries) {
        const taken = delivery.acks.filter((ack) => ack.taken === 'yes')
        for (const ack of taken) {
          const reason = staleness(history, delivery, ack, taken, deliveries)
          if (reason === undefined) continue
          findings.add(`an ack of ${message.value} was taken, though ${reason}`, delivery, ack)
        }
      }
    }
  }
  return findings
}

function staleness(
  history: History,
  delivery: Delivery,
  ack: Acked,
  taken: readonly Acked[],
  deliveries: readonly Delivery[],
): string | undefined {
  if (delivery.expiresMax < ack.start) return 'its lease had run out'
  if (delivery.releasedMax < ack.start) return 'its lease had been released'
  if (taken.some((other) => other !== ack && other.end < ack.start)) {
    return 'it had been acknowledged before'
  }
  const successor = deliveries.find(
    (other) =>
      other.id === delivery.id &&
      other.pop !== delivery.pop &&
      other.end < ack.start &&
      surelyBefore(history, delivery, other),
  )
  return successor === undefined ? undefined : 'the message had been leased to another since'
}
