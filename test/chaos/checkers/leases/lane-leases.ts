// Promise 4: in queues ordered by partition there is one lease at a time per group and partition. A lease is
// over when all its messages of that partition have ended. overlapping-leases.ts explains when two leases
// certainly overlapped.
import type { History } from '../../history/history.ts'
import type { Delivery } from '../../history/history-views.ts'
import { ackedMin } from '../certainty.ts'
import { Findings } from '../findings.ts'

interface LaneLease {
  readonly first: Delivery
  /** The earliest time at which this lease may have freed its lane. */
  readonly endsMin: number
}

export function laneLeases(history: History): Findings {
  const findings = new Findings()
  for (const { queue, group, partition, deliveries } of history.lanes()) {
    if (history.queues.get(queue)?.ordering !== 'partition') continue
    let longest: LaneLease | undefined
    for (const lease of leasesOf(deliveries)) {
      if (longest !== undefined && overlap(history, longest, lease)) {
        findings.add(
          `${group} had two leases at once on ${partition} of ${queue}`,
          longest.first,
          lease.first,
        )
      }
      if (longest === undefined || lease.endsMin > longest.endsMin) longest = lease
    }
  }
  return findings
}

/** The leases of one lane, in the order of delivery. */
function leasesOf(deliveries: readonly Delivery[]): LaneLease[] {
  const pops = new Map<number, Delivery[]>()
  for (const delivery of deliveries) {
    const list = pops.get(delivery.pop)
    if (list === undefined) pops.set(delivery.pop, [delivery])
    else list.push(delivery)
  }
  const leases = [...pops.values()].map((held) => {
    const first = held[0] as Delivery
    const allAcked = held.reduce((latest, delivery) => Math.max(latest, ackedMin(delivery)), 0)
    return { first, endsMin: Math.min(first.expiresMin, first.releasedMin, allAcked) }
  })
  return leases.sort((a, b) => a.first.end - b.first.end)
}

function overlap(history: History, one: LaneLease, other: LaneLease): boolean {
  if (one.first.end >= other.endsMin || other.first.end >= one.endsMin) return false
  const from = Math.min(one.first.begins, other.first.begins)
  return !history.forgets(from, Math.max(one.first.end, other.first.end))
}
