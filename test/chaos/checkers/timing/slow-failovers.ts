// A failover keeps pushes from being answered for ten seconds at most: the standby is promoted at once, so what is counted is its
// promotion and how soon the nodes find it. No other fault has such a bound here. How long a killed node's leases take depends on
// the backlog of their lanes, and how long the rest does on how long the fault is held.
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
    findings.add(`${fault.name} ${fault.target}: no push was answered for ${seconds} s`, recovery)
  }
  return findings
}
