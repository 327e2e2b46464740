// A result is stored in the transaction of its ack. After the drain every message of a queue in which all acks
// return results is acknowledged, so each has its own.
import type { History } from '../../history/history.ts'
import { Findings } from '../findings.ts'

export function lostResults({ audit }: History): Findings {
  const findings = new Findings()
  for (const value of audit?.withoutResult ?? []) findings.add(`${value} has not its result`)
  return findings
}
