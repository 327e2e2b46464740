// A cancelled message is never delivered: neither after its cancellation, nor can a delivery have completed it. A
// delivery that failed before is allowed.
import type { History } from '../../history/history.ts'
import { completion } from '../certainty.ts'
import { Findings } from '../findings.ts'

export function cancelledAndDelivered(history: History): Findings {
  const findings = new Findings()
  if (history.cancels.size === 0) return findings
  for (const message of history.messages()) {
    for (const delivery of message.deliveries) {
      const cancel = history.cancels.get(delivery.id)
      if (cancel === undefined || cancel.doneAt === Number.POSITIVE_INFINITY) continue
      const isLater = delivery.begins > cancel.doneAt
      if (!isLater && completion(delivery) === undefined) continue
      const how = isLater ? 'delivered after it was cancelled' : 'completed and cancelled'
      findings.add(`${message.value} of ${message.queue} was ${how}`, delivery)
    }
  }
  return findings
}
