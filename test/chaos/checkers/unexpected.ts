// Nothing is delivered that nobody pushed, or whose push was refused, or into another partition than it was pushed to.
import type { History } from '../history.ts'
import { Findings } from './findings.ts'

export function unexpected(history: History): Findings {
  const findings = new Findings()
  for (const message of history.messages()) {
    const [delivery] = message.deliveries
    if (delivery === undefined) continue
    const possible = message.pushes.filter(({ outcome }) => outcome !== 'fail')
    const name = `${message.value} of ${message.queue}`
    if (message.pushes.length === 0) {
      findings.add(`${name} was delivered, and nobody pushed it`, message)
    } else if (possible.length === 0) {
      findings.add(`${name} was delivered, and every push of it was refused`, message)
    } else if (
      !message.deliveries.every((got) => possible.some((push) => push.partition === got.partition))
    ) {
      findings.add(`${name} was delivered in another partition than it was pushed to`, message)
    } else if (possible.every((push) => push.start > delivery.end)) {
      findings.add(`${name} was delivered before it was pushed`, message)
    }
  }
  return findings
}
