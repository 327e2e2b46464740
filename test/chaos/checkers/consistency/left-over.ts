// After the drain nothing is left: no backlog, no lease, nothing scheduled, no contradiction between tables.
import type { History } from '../../history/history.ts'
import { Findings } from '../findings.ts'

export function leftOver({ audit }: History): Findings {
  const findings = new Findings()
  if (audit === undefined) {
    findings.add('the history has no audit of the tables')
    return findings
  }
  for (const group of audit.undrained) {
    findings.add(`${group.left} messages of ${group.queue} are left for ${group.group}`, group)
  }
  if (audit.leases > 0) findings.add(`${audit.leases} leases are left`, audit)
  if (audit.scheduled > 0) findings.add(`${audit.scheduled} scheduled messages are left`, audit)
  for (const contradiction of audit.contradictions) findings.add(contradiction)
  return findings
}
