// Promise 4, where messages come in: the log of a partition follows the pushes.
// - of two pushes, one of which was answered before the other was sent, the earlier has the lower seq, whoever made them;
// - within one push, and within one transaction of an SQL producer, items keep their order.
// What SQL producers and delays put in reaches the log later than it was pushed, and is left out of the first.
import type { History } from '../../history/history.ts'
import type { Pushed } from '../../history/history-views.ts'
import { Findings } from '../findings.ts'

interface Placed {
  readonly seq: number
  readonly value: string
  readonly push: Pushed
}

export function pushOrder(history: History): Findings {
  const findings = new Findings()
  for (const [place, log] of logsOf(history)) {
    log.sort((a, b) => a.seq - b.seq)
    const rowOfCall = new Map<number, number>()
    let latest: Placed | undefined
    for (const placed of log) {
      const { push, value } = placed
      if ((rowOfCall.get(push.call) ?? -1) > push.row) {
        findings.add(`in ${place}, ${value} stands behind what its own push named later`, placed)
      }
      rowOfCall.set(push.call, push.row)
      if (push.by === 'sql') continue
      if (latest !== undefined && latest.push.start > push.end) {
        findings.add(
          `in ${place}, ${value} stands behind ${latest.value}, sent later`,
          latest,
          placed,
        )
      }
      if (latest === undefined || push.start > latest.push.start) latest = placed
    }
  }
  return findings
}

/** What was stored at once, by partition, with the seq under which it was delivered. */
function logsOf(history: History): Map<string, Placed[]> {
  const logs = new Map<string, Placed[]>()
  for (const { queue, value, pushes, deliveries } of history.messages()) {
    if (history.queues.get(queue)?.ordering !== 'partition') continue
    for (const push of pushes) {
      if (push.outcome !== 'ok' || push.status === 'duplicate' || push.delayMs > 0) continue
      const seq = deliveries.find(({ id }) => id === push.id)?.seq
      if (seq === undefined) continue
      const place = `${push.partition} of ${queue}`
      const log = logs.get(place)
      if (log === undefined) logs.set(place, [{ seq, value, push }])
      else log.push({ seq, value, push })
    }
  }
  return logs
}
