// `deadLetterTo` moves each given-up message exactly once, and the queue that it names delivers the moved
// message. The audit lists moved messages as dead letters of the queue they come from, and dead-letters.ts
// checks that these are exactly the given-up messages. This rule checks that each was moved once and
// delivered.
import type { History } from '../../history/history.ts'
import type { QueueRecord } from '../../history/records.ts'
import { Findings } from '../findings.ts'

export function movedLetters(history: History): Findings {
  const findings = new Findings()
  if (history.audit === undefined) return findings
  for (const queue of history.queues.values()) {
    if (queue.lettersOf !== undefined) checkTarget(history, queue, queue.lettersOf, findings)
  }
  return findings
}

function checkTarget(
  history: History,
  target: QueueRecord,
  source: string,
  findings: Findings,
): void {
  const { deadLetters = [], undrained = [] } = history.audit ?? {}
  const isDrained = !undrained.some(({ queue }) => queue === target.queue)
  const moved = new Map<string, number>()
  for (const { queue, group, value } of deadLetters) {
    if (queue !== source) continue
    const key = JSON.stringify([group, value])
    moved.set(key, (moved.get(key) ?? 0) + 1)
    if (moved.get(key) === 2) findings.add(`${value} was moved twice to ${target.queue}`)
    const row = history.find(target.queue, value)
    const isDelivered = row !== undefined && history.message(row).deliveries.length > 0
    if (isDrained && !isDelivered)
      findings.add(`${value} was moved to ${target.queue} and not delivered`)
  }
}
