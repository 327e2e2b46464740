// The acks and pushes of a transaction take effect together or not at all.
// - ok: everything it pushed is delivered, and nothing it acknowledged is delivered again.
// - unknown: all of its pushes are stored, or none. If all are stored, the rule for ok applies. If none is
//   stored, the messages it acknowledged must be delivered again.
// unexpected.ts checks refused transactions. If another call pushed the same values, these values prove
// nothing about an unknown transaction.
import type { History } from '../../history/history.ts'
import type { Delivery, Message, Transaction } from '../../history/history-views.ts'
import { surelyBefore } from '../certainty.ts'
import { type DeadLetterIndex, deadLetters } from '../dead-letter-index.ts'
import { ghostsOf } from '../delivery/ghosts.ts'
import { Findings } from '../findings.ts'

export function transactions(history: History): Findings {
  const findings = new Findings()
  const letters = deadLetters(history)
  for (const transaction of history.transactions()) {
    if (transaction.outcome === 'fail' || transaction.pushed.length === 0) continue
    const isSure = transaction.outcome === 'ok'
    const pushed = transaction.pushed.map((row) => history.message(row))
    if (!isSure && !pushed.every((message) => isItsOwn(history, message, transaction))) continue
    const arrived = pushed.filter((message) => hasArrived(history, message, letters))
    const acked = transaction.acked.filter((row) => row >= 0).map((row) => history.delivery(row))
    if (arrived.length === 0 && !isSure) {
      checkComesAgain(history, transaction, acked, letters, findings)
    } else if (arrived.length < pushed.length) {
      findings.add(
        `${arrived.length} of the ${pushed.length} pushes of a transaction were delivered`,
        transaction,
        ...pushed,
      )
    } else {
      checkEnded(history, transaction, acked, findings)
    }
  }
  return findings
}

function isItsOwn(history: History, message: Message, { call }: Transaction): boolean {
  if (ghostsOf(history, message).size > 0) return false
  return message.pushes.every((push) => push.call === call || push.outcome === 'fail')
}

function hasArrived(history: History, message: Message, letters: DeadLetterIndex): boolean {
  const groups = history.queues.get(message.queue)?.groups ?? []
  return groups.every(
    (group) =>
      message.deliveries.some((delivery) => delivery.group === group) ||
      letters.has(message, group),
  )
}

function checkEnded(
  history: History,
  transaction: Transaction,
  acked: readonly Delivery[],
  findings: Findings,
): void {
  for (const delivery of acked) {
    const again = othersOf(history, delivery).find((other) =>
      surelyBefore(history, delivery, other),
    )
    if (again === undefined) continue
    findings.add(
      'a transaction pushed, but a message that it acknowledged was delivered again',
      transaction,
      delivery,
      again,
    )
  }
}

function checkComesAgain(
  history: History,
  transaction: Transaction,
  acked: readonly Delivery[],
  letters: DeadLetterIndex,
  findings: Findings,
): void {
  for (const delivery of acked) {
    const endedOtherwise = delivery.acks.some(
      ({ call, taken }) => call !== transaction.call && taken !== 'no',
    )
    if (endedOtherwise || letters.has(history.message(delivery.message), delivery.group)) continue
    if (othersOf(history, delivery).some((other) => !surelyBefore(history, other, delivery)))
      continue
    findings.add(
      'a transaction pushed nothing, but a message that it acknowledged is gone',
      transaction,
      delivery,
    )
  }
}

function othersOf(history: History, delivery: Delivery): Delivery[] {
  const { deliveries } = history.message(delivery.message)
  return deliveries.filter(
    ({ row, id, group }) => row !== delivery.row && id === delivery.id && group === delivery.group,
  )
}
