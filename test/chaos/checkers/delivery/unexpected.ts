// A delivered message must have been pushed, by a push that was not refused, and must come from the partition
// that it was pushed to. It must not be delivered after a purge that must have removed it, or to a group
// whose subscription starts after the message.
import type { History } from '../../history/history.ts'
import type { Delivery, Message } from '../../history/history-views.ts'
import { Findings } from '../findings.ts'
import { isBeforeSubscription, pushedTo } from './subscriptions.ts'

export function unexpected(history: History): Findings {
  const findings = new Findings()
  for (const message of history.messages()) {
    const [delivery] = message.deliveries
    if (delivery === undefined) continue
    if (history.queues.get(message.queue)?.lettersOf !== undefined) {
      checkLetter(history, message, findings)
      continue
    }
    const possible = message.pushes.filter(({ outcome }) => outcome !== 'fail')
    const name = `${message.value} of ${message.queue}`
    if (message.pushes.length === 0) {
      findings.add(`${name} was delivered, but never pushed`, message)
    } else if (possible.length === 0) {
      findings.add(`${name} was delivered, but every push of it was refused`, message)
    } else if (
      !message.deliveries.every((got) => possible.some((push) => push.partition === got.partition))
    ) {
      findings.add(`${name} was delivered in another partition than it was pushed to`, message)
    } else if (possible.every((push) => push.start > delivery.end)) {
      findings.add(`${name} was delivered before it was pushed`, message)
    } else if (!history.operations.isEmpty) {
      checkPlaces(history, message, name, findings)
    }
  }
  return findings
}

/** A moved letter has the value of a message that was pushed to the queue it comes from. */
function checkLetter(history: History, message: Message, findings: Findings): void {
  const source = history.queues.get(message.queue)?.lettersOf ?? ''
  if (history.find(source, message.value) !== undefined) return
  findings.add(
    `${message.value} of ${message.queue} was delivered, but never pushed to ${source}`,
    message,
  )
}

function checkPlaces(history: History, message: Message, name: string, findings: Findings): void {
  for (const delivery of message.deliveries) {
    if (wasPurgedBefore(history, message, delivery)) {
      findings.add(`${name} was delivered after a purge that must have removed it`, delivery)
    }
    if (isBeforeSubscription(history, message, delivery)) {
      findings.add(
        `${name} was delivered to ${delivery.group}, whose subscription starts after it`,
        delivery,
      )
    }
  }
}

/**
 * Whether a purge must have removed the message before this delivery. Dead letters survive a purge, and a
 * redrive may put them back.
 */
function wasPurgedBefore(history: History, message: Message, delivery: Delivery): boolean {
  const { operations } = history
  const stored = pushedTo(message)
  if (operations.of('redrive', delivery).length > 0) return false
  return operations
    .of('purge', delivery)
    .some(({ outcome, start, end }) => outcome === 'ok' && stored < start && end < delivery.begins)
}
