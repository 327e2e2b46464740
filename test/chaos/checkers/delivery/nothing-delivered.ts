// A run without deliveries proves nothing, so every queue must have delivered a message.
import type { History } from '../../history/history.ts'
import { Findings } from '../findings.ts'

export function nothingDelivered(history: History): Findings {
  const findings = new Findings()
  const moved = new Set<string>()
  for (const { queue } of history.lanes()) moved.add(queue)
  if (moved.size === 0) findings.add('no message was delivered at all')
  for (const queue of history.queues.keys()) {
    if (!moved.has(queue)) findings.add(`no message of ${queue} was delivered`)
  }
  return findings
}
