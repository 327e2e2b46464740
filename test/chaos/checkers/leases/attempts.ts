// Promise 5: attempts are counted at delivery, per message.
//
// Each delivery has the next attempt number. A number may repeat only if the previous attempt may not have
// been counted: it was released, acknowledged with `retry`, or forgotten by the database. A number may be
// skipped only if a delivery in between reached no consumer: its response was lost, or its node or database
// session died. After a redrive or a seek, attempts count from one again.
import type { History } from '../../history/history.ts'
import type { Delivery } from '../../history/history-views.ts'
import { byAttempt, deliveriesByGroup, restarts } from '../certainty.ts'
import { Findings } from '../findings.ts'

/** The messages of a lease that a dying node took may still be redelivered for this long after the fault. */
const aftermathMs = 10_000

export function attempts(history: History): Findings {
  const findings = new Findings()
  for (const message of history.redeliveredMessages()) {
    for (const [group, all] of deliveriesByGroup(message)) {
      for (const id of new Set(all.map((delivery) => delivery.id))) {
        const deliveries = all.filter((delivery) => delivery.id === id)
        countingRuns(history, deliveries).forEach((run, i) => {
          let previous: Delivery | undefined
          for (const delivery of run) {
            const problem =
              previous !== undefined
                ? nextWrong(history, previous, delivery)
                : i === 0
                  ? firstWrong(history, delivery, message.pushes[0]?.start ?? 0)
                  : undefined
            if (problem !== undefined) {
              findings.add(`${message.value} ${problem} for ${group}`, ...deliveries)
            }
            previous = delivery
          }
        })
      }
    }
  }
  return findings
}

/** Splits the deliveries where the count may have started again, and sorts each run by attempt. */
function countingRuns(history: History, deliveries: readonly Delivery[]): Delivery[][] {
  const runs: Delivery[][] = []
  let previous: Delivery | undefined
  for (const delivery of deliveries) {
    const run = runs.at(-1)
    const { begins } = previous ?? delivery
    if (
      run === undefined ||
      history.operations.touch(restarts, delivery, Math.min(begins, delivery.begins), delivery.end)
    ) {
      runs.push([delivery])
    } else {
      run.push(delivery)
    }
    previous = delivery
  }
  return runs.map((run) => run.sort(byAttempt))
}

function firstWrong(history: History, first: Delivery, pushedFrom: number): string | undefined {
  if (first.attempt === 1) return undefined
  if (first.attempt < 1) return `was delivered as attempt ${first.attempt}`
  if (mayFollowLostDelivery(history, first, pushedFrom)) return undefined
  return `was first delivered as attempt ${first.attempt}`
}

function nextWrong(history: History, previous: Delivery, next: Delivery): string | undefined {
  const charged = next.attempt - previous.attempt
  if (charged === 1) return undefined
  if (charged === 0) {
    const from = Math.min(previous.begins, next.begins)
    if (history.forgets(from, Math.max(previous.end, next.end))) return undefined
    return mayBeUncharged(previous, next) || mayBeUncharged(next, previous)
      ? undefined
      : `was delivered twice as attempt ${next.attempt}`
  }
  if (mayFollowLostDelivery(history, next, previous.begins)) return undefined
  return `was delivered as attempt ${next.attempt} after ${previous.attempt}`
}

function mayBeUncharged({ releasedMin, acks }: Delivery, next: Delivery): boolean {
  if (releasedMin <= next.end) return true
  return acks.some(
    ({ status, taken, start }) => status === 'retry' && taken !== 'no' && start <= next.end,
  )
}

function mayFollowLostDelivery(history: History, delivery: Delivery, from: number): boolean {
  return (
    history.faulty(from - aftermathMs, delivery.end) ||
    history.lostPop(delivery, from, delivery.end)
  )
}
