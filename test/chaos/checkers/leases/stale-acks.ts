// Promise 3: an ack is refused if its lease is over. The lease is certainly over if, before the ack was sent,
// - the lease must have expired, or its release had succeeded,
// - the message had been delivered again,
// - or another ack with the same token had been accepted.
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
          findings.add(`an ack of ${message.value} was accepted, although ${reason}`, delivery, ack)
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
  if (delivery.expiresMax < ack.start) return 'its lease had expired'
  if (delivery.releasedMax < ack.start) return 'its lease had been released'
  if (taken.some((other) => other !== ack && other.end < ack.start)) {
    return 'it had already been acknowledged'
  }
  const successor = deliveries.find(
    (other) =>
      other.id === delivery.id &&
      other.pop !== delivery.pop &&
      other.end < ack.start &&
      surelyBefore(history, delivery, other),
  )
  return successor === undefined ? undefined : 'the message had been leased again'
}
