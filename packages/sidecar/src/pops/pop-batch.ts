// One SQL call for all waiters of a wait group. SQL distributes the lanes: oldest waiter first, one lane each
// before any waiter gets a second.

import type { Lease, PopRequest, PopResult } from '@rouse/storage'
import type { GrantOutcome } from '../coordinator.ts'
import type { PopResponse } from '../operation.ts'
import {
  found,
  nothing,
  type Waiter,
  type WaitingGroup,
  type WaitingRequests,
} from './waiting-requests.ts'

/** The maximum waiters and messages of one call: a longer call would delay the other groups. */
const demandsMax = 100
const messagesMax = 2_000

export interface PopRunnerPorts {
  readonly pop: (request: PopRequest) => Promise<PopResult>
  readonly release: (leaseIds: readonly string[]) => void
  readonly durable: boolean
  /** Payload and headers of one response. */
  readonly bytesMax: number
}

export interface PopRun {
  readonly outcome: GrantOutcome
  /** Messages. */
  readonly found: number
  /** Waiters that the call included. */
  readonly served: number
  /** The call was full: it left out some waiters of the group. */
  readonly more: boolean
}

/** The group had no waiters. */
export const noPop: PopRun = { outcome: 'unused', found: 0, served: 0, more: false }

/**
 * Pops once for the group's waiters and settles those that get messages. Rejects when `ports.pop` rejects.
 */
export async function runPop(
  waiters: WaitingRequests,
  group: WaitingGroup,
  ports: PopRunnerPorts,
): Promise<PopRun> {
  const { served, more } = chooseWaiters(group)
  if (served.length === 0) return noPop
  for (const waiter of served) waiter.inFlight = true
  let result: PopResult
  try {
    result = await ports.pop(toRequest(group, served, ports))
  } finally {
    for (const waiter of served) waiter.inFlight = false
  }
  rememberPosition(group, result.leases)
  distribute(waiters, group, served, result, ports)
  const outcome = result.status === 'paused' ? 'empty' : result.status
  const messages = result.leases.reduce((sum, lease) => sum + lease.messages.length, 0)
  return { outcome, found: messages, served: served.length, more: more && outcome === 'messages' }
}

function chooseWaiters(group: WaitingGroup): { served: Waiter[]; more: boolean } {
  const served: Waiter[] = []
  let messages = 0
  for (const waiter of group.waiters) {
    if (waiter.settled || waiter.inFlight) continue
    messages += waiter.spec.batch
    if (served.length >= demandsMax || (served.length > 0 && messages > messagesMax)) {
      return { served, more: true }
    }
    served.push(waiter)
  }
  return { served, more: false }
}

function toRequest(
  group: WaitingGroup,
  served: readonly Waiter[],
  { durable, bytesMax }: PopRunnerPorts,
): PopRequest {
  return {
    source: group.description.source,
    group: group.description.group,
    // The subscription matters only if the call creates the consumer group; the oldest waiter decides.
    subscription: served[0]?.spec.subscription,
    after: group.after,
    durable,
    bytesMax,
    demands: served.map(({ spec }) => ({
      batch: spec.batch,
      partitions: spec.partitions,
      leaseMs: spec.leaseMs,
      autoAck: spec.autoAck,
      holder: spec.holder,
    })),
  }
}

function rememberPosition(group: WaitingGroup, leases: readonly Lease[]): void {
  const last = leases.at(-1)
  if (last !== undefined) group.after = last.partitionId
}

function distribute(
  waiters: WaitingRequests,
  group: WaitingGroup,
  served: readonly Waiter[],
  result: PopResult,
  ports: PopRunnerPorts,
): void {
  const orphaned: string[] = []
  const byDemand = groupByDemand(result.leases)
  served.forEach((waiter, demand) => {
    const leases = byDemand.get(demand)
    if (leases === undefined) {
      afterNothing(waiters, group, waiter, result)
    } else if (waiter.settled) {
      // The waiter left or timed out during the call. Messages acknowledged on delivery are lost with it.
      if (waiter.spec.autoAck !== true) orphaned.push((leases[0] as Lease).leaseId)
    } else {
      settle(waiters, group, waiter, found(leases))
    }
  })
  if (orphaned.length > 0) ports.release(orphaned)
}

function groupByDemand(leases: readonly Lease[]): Map<number, Lease[]> {
  const groups = new Map<number, Lease[]>()
  for (const lease of leases) {
    const known = groups.get(lease.demand)
    if (known === undefined) groups.set(lease.demand, [lease])
    else known.push(lease)
  }
  return groups
}

function afterNothing(
  waiters: WaitingRequests,
  group: WaitingGroup,
  waiter: Waiter,
  result: PopResult,
): void {
  // A `new` subscription starts at the waiter's first query, even if the queue is created later.
  if (waiter.spec.subscription === 'new') {
    waiter.spec = { ...waiter.spec, subscription: { fromMs: result.databaseTimeMs } }
  }
  if (waiter.waits || waiter.settled || result.status === 'contended') return
  // Other waiters of the call got messages, and a lane may have been busy: pop again for this one.
  if (result.status === 'messages') return
  settle(waiters, group, waiter, { ...nothing, paused: result.status === 'paused' })
}

export function settle(
  waiters: WaitingRequests,
  group: WaitingGroup,
  waiter: Waiter,
  outcome: PopResponse,
): void {
  if (waiter.settled) return
  waiter.settled = true
  waiters.remove(group, waiter)
  waiter.settle(outcome)
}
