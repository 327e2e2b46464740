// Promise 5: a message that fails in every attempt becomes a dead letter after exactly as many deliveries as
// its queue allows.
import type { History } from '../../history/history.ts'
import type { Delivery, Message } from '../../history/history-views.ts'
import { completion, deliveriesByGroup, mayBeRedriven } from '../certainty.ts'
import { deadLetters as indexOf } from '../dead-letter-index.ts'
import { Findings } from '../findings.ts'

export function deadLetters(history: History): Findings {
  const findings = new Findings()
  if (history.audit === undefined) return findings
  const letters = indexOf(history)
  for (const letter of history.audit.deadLetters) {
    const row = history.find(letter.queue, letter.value)
    if (row === undefined) findings.add(`a dead letter of ${letter.queue} was never pushed`, letter)
    else checkLetter(history, letter, history.message(row), findings)
  }
  for (const message of history.messages()) {
    const queue = history.queues.get(message.queue)
    if (queue === undefined || message.deliveries.length === 0) continue
    const triesMax = queue.retryLimit + 1
    for (const [group, deliveries] of deliveriesByGroup(message)) {
      const beyond = deliveries.find(({ attempt }) => attempt > triesMax)
      if (beyond !== undefined) {
        findings.add(
          `${message.value} was delivered as attempt ${beyond.attempt} of ${triesMax}`,
          beyond,
        )
      }
      const found = letters.of(message, group)
      if (found.length > new Set(deliveries.map(({ id }) => id)).size) {
        findings.add(`${message.value} has ${found.length} dead letters`, message)
      }
      const last = deliveries.find((delivery) => {
        const givenUp = givenUpFrom(delivery, triesMax)
        return givenUp !== undefined && !mayBeRedriven(history, delivery, givenUp)
      })
      if (last !== undefined && found.length === 0) {
        findings.add(`${message.value} used up its attempts and is not a dead letter`, last)
      }
    }
  }
  return findings
}

function checkLetter(
  history: History,
  letter: { readonly group: string; readonly attempts: number; readonly value: string },
  message: Message,
  findings: Findings,
): void {
  const deliveries = message.deliveries.filter(({ group }) => group === letter.group)
  const completed = deliveries.find((delivery) => completion(delivery) !== undefined)
  const isOneMessage = new Set(deliveries.map(({ id }) => id)).size === 1
  if (completed !== undefined && isOneMessage) {
    findings.add(`${letter.value} was completed and is a dead letter`, completed, letter)
  }
  const triesMax = (history.queues.get(message.queue)?.retryLimit ?? 0) + 1
  const givenUpEarly = deliveries.some(({ acks }) =>
    acks.some(({ status, taken }) => status === 'dlq' && taken !== 'no'),
  )
  if (!givenUpEarly && letter.attempts !== triesMax) {
    findings.add(
      `${letter.value} became a dead letter after ${letter.attempts} attempts instead of ${triesMax}`,
      message,
      letter,
    )
  }
}

/** The time at which the ack that certainly ended the last attempt of the message was sent. */
function givenUpFrom({ acks, attempt }: Delivery, triesMax: number): number | undefined {
  return acks.find(
    ({ status, taken }) =>
      taken === 'yes' && (status === 'dlq' || (status === 'failed' && attempt >= triesMax)),
  )?.start
}
