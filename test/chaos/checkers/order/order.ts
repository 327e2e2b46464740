// Promise 4, in queues ordered by partition:
// - First attempts come in log order, within one response and between responses that certainly came one after
//   the other.
// - A message holds its lane until it has ended: until then no later message is delivered for the first time.
import type { History } from '../../history/history.ts'
import type { Delivery, Lane } from '../../history/history-views.ts'
import { moves } from '../certainty.ts'
import { deadLetters } from '../dead-letter-index.ts'
import { Findings } from '../findings.ts'

export function order(history: History): Findings {
  const findings = new Findings()
  for (const lane of history.lanes()) {
    if (history.queues.get(lane.queue)?.ordering !== 'partition') continue
    const bySeq = [...lane.deliveries].sort((a, b) => a.seq - b.seq || a.end - b.end)
    checkFirstAttempts(history, lane, bySeq, findings)
    checkHolding(history, lane, bySeq, findings)
  }
  return findings
}

/**
 * Checks each message against the messages that are later in the log. Of these, only the one that was
 * delivered first has to be compared: if it certainly came before the message, the order is wrong.
 */
function checkFirstAttempts(
  history: History,
  { group, partition }: Lane,
  bySeq: readonly Delivery[],
  findings: Findings,
): void {
  let earliest: Delivery | undefined
  const firsts = bySeq.filter(({ attempt, seq }, i) => attempt === 1 && bySeq[i - 1]?.seq !== seq)
  for (const delivery of firsts.reverse()) {
    if (earliest !== undefined && wrongWayRound(history, earliest, delivery)) {
      findings.add(
        `in ${partition}, ${group} got seq ${earliest.seq} before ${delivery.seq}`,
        earliest,
        delivery,
      )
    }
    if (earliest === undefined || delivery.end <= earliest.end) earliest = delivery
  }
}

/**
 * Whether `came` was certainly delivered before `due`. Deliveries of one response have rows in the order of
 * the response.
 */
function wrongWayRound(history: History, came: Delivery, due: Delivery): boolean {
  if (came.pop === due.pop) return came.row < due.row
  if (came.end >= due.begins || history.forgets(came.begins, due.end)) return false
  return !history.operations.touch(moves, came, came.begins, due.end)
}

function checkHolding(
  history: History,
  lane: Lane,
  bySeq: readonly Delivery[],
  findings: Findings,
): void {
  const retryLimit = history.queues.get(lane.queue)?.retryLimit ?? 0
  const letters = deadLetters(history)
  const lowestOfPop = new Map<number, number>()
  for (const { pop, seq } of bySeq) if (!lowestOfPop.has(pop)) lowestOfPop.set(pop, seq)
  // For each seq, `from` is the earliest time at which all messages up to that seq can have ended.
  const ended: { readonly seq: number; readonly from: number; readonly last: Delivery }[] = []
  for (let i = 0; i < bySeq.length; ) {
    const seq = bySeq[i]?.seq ?? 0
    let next = i
    while (bySeq[next]?.seq === seq) next += 1
    const deliveries = bySeq.slice(i, next)
    i = next
    const first = deliveries.reduce((a, b) => (b.end < a.end ? b : a))
    const held = holderBefore(ended, lowestOfPop.get(first.pop) ?? seq)
    if (
      first.attempt === 1 &&
      held !== undefined &&
      held.from > first.end &&
      !movedBetween(history, held.last, first)
    ) {
      findings.add(
        `in ${lane.partition}, ${lane.group} got seq ${seq} while ${held.last.seq} had not ended`,
        held.last,
        first,
      )
    }
    const isDead = letters.count > 0 && letters.has(history.message(first.message), lane.group)
    const from = Math.min(
      mayEndFrom(deliveries, retryLimit, isDead),
      ...deliveries.map((delivery) => history.operations.movedFrom(delivery, delivery.begins)),
      mayHaveDiedFrom(history, deliveries, retryLimit),
      ...deliveries.map((delivery) => mayBeCancelledFrom(history, delivery)),
    )
    const latest = ended.at(-1)
    ended.push(
      latest !== undefined && latest.from >= from ? { ...latest, seq } : { seq, from, last: first },
    )
  }
}

/** Whether a purge or seek may have moved the group between the two deliveries. */
function movedBetween(history: History, one: Delivery, other: Delivery): boolean {
  const from = Math.min(one.begins, other.begins)
  return history.operations.touch(moves, one, from, Math.max(one.end, other.end))
}

/**
 * The earliest time at which the message may have become a dead letter that was redriven later. The delivery
 * of its last attempt may have been lost.
 */
function mayHaveDiedFrom(
  history: History,
  deliveries: readonly Delivery[],
  retryLimit: number,
): number {
  const [first] = deliveries
  if (first === undefined || deliveries.some(({ attempt }) => attempt > retryLimit)) {
    return Number.POSITIVE_INFINITY
  }
  const last = Math.max(...deliveries.map(({ end }) => end))
  const isRedriven = history.operations.touch(['redrive'], first, first.begins, last)
  return isRedriven ? Math.min(...deliveries.map(({ begins }) => begins)) : Number.POSITIVE_INFINITY
}

/** The earliest time at which a cancel may have ended the message. It is refused while the message is leased. */
function mayBeCancelledFrom(history: History, delivery: Delivery): number {
  const { id, acks, expiresMin, releasedMin } = delivery
  if (!history.cancels.has(id)) return Number.POSITIVE_INFINITY
  return Math.min(expiresMin, releasedMin ?? expiresMin, ...acks.map(({ start }) => start))
}

function holderBefore<Ended extends { readonly seq: number }>(
  ended: readonly Ended[],
  seq: number,
): Ended | undefined {
  let low = 0
  let high = ended.length
  while (low < high) {
    const middle = (low + high) >> 1
    if ((ended[middle]?.seq ?? 0) < seq) low = middle + 1
    else high = middle
  }
  return ended[low - 1]
}

/**
 * The earliest time at which the message can have been completed or become a dead letter. The delivery of its
 * last attempt may have been lost.
 */
function mayEndFrom(deliveries: readonly Delivery[], retryLimit: number, isDead: boolean): number {
  const seenLast = deliveries.some(({ attempt }) => attempt > retryLimit)
  let from = Number.POSITIVE_INFINITY
  if (isDead && !seenLast) from = Math.max(...deliveries.map(({ begins }) => begins))
  for (const { acks, attempt, expiresMin } of deliveries) {
    for (const { status, taken, start } of acks) {
      const ends = status === 'completed' || status === 'dlq' || attempt > retryLimit
      if (taken !== 'no' && ends) from = Math.min(from, start)
    }
    if (attempt > retryLimit) from = Math.min(from, expiresMin)
  }
  return from
}
