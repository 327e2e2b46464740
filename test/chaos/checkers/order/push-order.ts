// Promise 4 for producers: the log of a partition follows the pushes.
// - If one push was answered before another was sent, the first push has the lower seq, even if the pushes
//   are from different producers.
// - The items of one push, or of one transaction of a SQL producer, keep their order.
// Messages of SQL producers and delayed ones reach the log later, so the first point does not apply to them.
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
        findings.add(`in ${place}, ${value} is stored after a later item of its own push`, placed)
      }
      rowOfCall.set(push.call, push.row)
      if (push.by === 'sql') continue
      if (latest !== undefined && latest.push.start > push.end) {
        findings.add(
          `in ${place}, ${value} is stored after ${latest.value}, which was sent later`,
          latest,
          placed,
        )
      }
      if (latest === undefined || push.start > latest.push.start) latest = placed
    }
  }
  return findings
}

/** The messages that were stored at once, by partition, with the seq of their delivery. */
function logsOf(history: History): Map<string, Placed[]> {
  const logs = new Map<string, Placed[]>()
  for (const { queue, value, pushes, deliveries } of history.messages()) {
    if (history.queues.get(queue)?.ordering !== 'partition') continue
    for (const push of pushes) {
      if (push.outcome !== 'ok' || push.status === 'duplicate' || push.delayMs > 0) continue
      // An id names a place in the log. If items are stored in another order, their ids are delivered with the
      // wrong values, so the value alone must do.
      const seq = (deliveries.find(({ id }) => id === push.id) ?? deliveries[0])?.seq
      if (seq === undefined) continue
      const place = `${push.partition} of ${queue}`
      const log = logs.get(place)
      if (log === undefined) logs.set(place, [{ seq, value, push }])
      else log.push({ seq, value, push })
    }
  }
  return logs
}
