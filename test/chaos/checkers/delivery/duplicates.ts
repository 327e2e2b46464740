// Promise 7: every duplicate has a reason.
//
// A duplicate is any delivery of a value to a group after the first. It is explained if
// - the earlier lease may have expired, been released or failed before this delivery,
// - the database may have forgotten leases, or a seek may have moved the group back,
// - or it is another message with the same value, pushed again without a key after a lost response.
// After an accepted completion, only a seek explains another delivery of the same message: acks are durable.
import type { History } from '../../history/history.ts'
import type { Delivery, Message } from '../../history/history-views.ts'
import { byAttempt, completion, deliveriesByGroup, restarts, surelyBefore } from '../certainty.ts'
import { Findings } from '../findings.ts'

export interface Duplicates {
  readonly count: number
  readonly unexplained: Findings
}

export function duplicates(history: History): Duplicates {
  let count = 0
  const unexplained = new Findings()
  for (const message of history.redeliveredMessages()) {
    if (message.deliveries.length < 2) continue
    for (const [group, deliveries] of deliveriesByGroup(message)) {
      count += deliveries.length - 1
      const ids = new Set(deliveries.map(({ id }) => id))
      if (ids.size > 1 && !isMoved(history, message) && ids.size > timesPushed(message)) {
        unexplained.add(`${message.value} was stored ${ids.size} times`, message)
      }
      for (const id of ids) {
        const same = deliveries.filter((delivery) => delivery.id === id)
        if (!isCountedAnew(history, same)) same.sort(byAttempt)
        for (let i = 1; i < same.length; i += 1) {
          const [earlier, later] = same.slice(i - 1, i + 1) as [Delivery, Delivery]
          if (explained(history, earlier, later)) continue
          unexplained.add(
            `${message.value} was delivered again to ${group} without a reason`,
            earlier,
            later,
          )
        }
      }
    }
  }
  return { count, unexplained }
}

/** moved-letters.ts counts those. */
function isMoved({ queues }: History, { queue }: Message): boolean {
  return queues.get(queue)?.lettersOf !== undefined
}

/** The largest number of messages that the pushes of this value may have stored. */
function timesPushed({ pushes }: Message): number {
  return pushes.filter(({ outcome, status }) => outcome !== 'fail' && status !== 'duplicate').length
}

function explained(history: History, earlier: Delivery, later: Delivery): boolean {
  if (surelyBefore(history, earlier, later)) return hasReason(history, earlier, later)
  // The order of the two is unknown, so an explanation in either order is enough.
  return hasReason(history, earlier, later) || hasReason(history, later, earlier)
}

function isCountedAnew(history: History, deliveries: readonly Delivery[]): boolean {
  const [first] = deliveries
  const last = deliveries.at(-1)
  if (first === undefined || last === undefined) return false
  return history.operations.touch(restarts, first, first.begins, last.end)
}

function hasReason(history: History, earlier: Delivery, later: Delivery): boolean {
  if (history.operations.touch(['seek'], earlier, earlier.begins, later.end)) return true
  if (completion(earlier) !== undefined) return false
  if (earlier.expiresMin <= later.end || earlier.releasedMin <= later.end) return true
  if (history.forgets(earlier.begins, later.end)) return true
  return earlier.acks.some(
    ({ status, taken, start }) =>
      (status === 'failed' || status === 'retry') && taken !== 'no' && start <= later.end,
  )
}
