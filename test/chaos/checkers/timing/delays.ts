// No message is delivered before its delay is over, counted from the earliest push that can have stored it.
import type { History } from '../../history/history.ts'
import { Findings } from '../findings.ts'

/**
 * The allowance for the clock of the database, which is cut to milliseconds and differs from the clocks of
 * the clients.
 */
const clockMs = 5

export function delays(history: History): Findings {
  const findings = new Findings()
  for (const message of history.messages()) {
    const possible = message.pushes.filter(({ outcome }) => outcome !== 'fail')
    if (!possible.some(({ delayMs }) => delayMs > 0)) continue
    const dueFrom = Math.min(...possible.map(({ start, delayMs }) => start + delayMs))
    const early = message.deliveries.find(({ end }) => end + clockMs < dueFrom)
    if (early === undefined) continue
    findings.add(
      `${message.value} was delivered ${Math.round(dueFrom - early.end)} ms early`,
      message,
    )
  }
  return findings
}
