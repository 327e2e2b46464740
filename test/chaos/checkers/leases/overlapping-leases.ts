// Promise 3: one live lease per message and group.
//
// Two leases certainly overlapped if each was delivered before the other can have ended. No matter which of
// them began first, it was still alive when the other began.
import type { History } from '../../history/history.ts'
import type { Delivery } from '../../history/history-views.ts'
import { deliveriesByGroup, endsMin } from '../certainty.ts'
import { Findings } from '../findings.ts'

export function overlappingLeases(history: History): Findings {
  const findings = new Findings()
  for (const message of history.redeliveredMessages()) {
    if (message.deliveries.length < 2) continue
    for (const [group, deliveries] of deliveriesByGroup(message)) {
      deliveries.forEach((one, i) => {
        for (const other of deliveries.slice(i + 1)) {
          if (!overlap(history, one, other)) continue
          findings.add(`${message.value} was leased twice at the same time by ${group}`, one, other)
        }
      })
    }
  }
  return findings
}

function overlap(history: History, one: Delivery, other: Delivery): boolean {
  if (one.id !== other.id || one.pop === other.pop) return one.id === other.id
  if (one.end >= endsMin(other) || other.end >= endsMin(one)) return false
  return !history.forgets(Math.min(one.begins, other.begins), Math.max(one.end, other.end))
}
