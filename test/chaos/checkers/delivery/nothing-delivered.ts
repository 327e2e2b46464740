// A run that moved nothing proves nothing: every queue must have handed something out.
import type { History } from '../../history/history.ts'
import { Findings } from '../findings.ts'

export function nothingDelivered(history: History): Findings {
  const findings = new Findings()
  const moved = new Set<string>()
  for (const { queue } of history.lanes()) moved.add(queue)
  if (moved.size === 0) findings.add('nothing was delivered at all')
  for (const queue of history.queues.keys()) {
    if (!moved.has(queue)) findings.add(`nothing of ${queue} was delivered`)
  }
  return findings
}
