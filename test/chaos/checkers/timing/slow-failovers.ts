// A failover interrupts pushes for at most ten seconds. The standby is promoted at once, so this measures the
// promotion and how soon the nodes find the new primary. Other faults have no such limit: after a node is
// killed, the time until its messages return depends on the backlog of their lanes; after other faults, the
// recovery time depends on the duration of the fault.
import { Findings } from '../findings.ts'
import { calmPushMsMax, type FaultRecovery } from './recovery.ts'

const failovers: ReadonlySet<string> = new Set(['postgres-failover', 'postgres-freeze-failover'])
const unansweredMsMax = 10_000

export function slowFailovers(recoveries: readonly FaultRecovery[]): Findings {
  const findings = new Findings()
  for (const recovery of recoveries) {
    const { fault, calmPushMs, longestGapMs } = recovery
    if (!failovers.has(fault.name) || longestGapMs <= unansweredMsMax) continue
    if (calmPushMs === undefined || calmPushMs > calmPushMsMax) continue
    const seconds = (longestGapMs / 1_000).toFixed(1)
    findings.add(`${fault.name} ${fault.target}: no push succeeded for ${seconds} s`, recovery)
  }
  return findings
}
