// Reserves waiters for pushes. A push of a single message may lease it to a waiter of the same worker, in the same SQL
// call (docs/decisions/0087-direct-delivery.md).
//
//   reserved   no pop includes the waiter
//     → free       the call ended without a lease, or took too long
//     → settled    the call leased the message; or the waiter left, and its lease is released
import { randomUUID } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import {
  canPushDirectly,
  type DirectDemand,
  type DirectPushResult,
  type Lease,
  type NewMessage,
} from '@rouse/storage'
import type { Waiter, WaitingGroup, WaitingRequests } from './waiting-requests.ts'

/** A waiter that is reserved for the message of a push in flight. */
export interface DirectDelivery {
  readonly demand: DirectDemand
  /** Ends the reservation. Without a lease the message was stored for all, or not at all. */
  deliver(pushed?: Pick<DirectPushResult, 'lease' | 'databaseTimeMs'>): void
  /** The push may be stored, or may still be in progress, but no waiter gets its lease. */
  outcomeUnknown(): void
}

export interface DirectDeliveriesOptions {
  readonly deque: WaitingRequests
  /** The group's waiters are needed by a pop. */
  readonly isPopping: (group: WaitingGroup) => boolean
  readonly onDelivered: (group: WaitingGroup) => void
  /** Resolves to whether the lease existed. */
  readonly release: (leaseId: string) => Promise<boolean>
  /** Monotonic milliseconds. */
  readonly nowMs: () => number
}

/** A push that takes longer than this does not keep its waiter from other messages. */
const reservedMsMax = 50
/** How long after a push that could not deliver no other push of the group tries. */
const suspendedMs = 100
/** The groups and waiters that a push looks at. */
const examinedMax = 32
/** When the lease of a push with an unknown outcome is released: each time after the one before. */
const unknownLeaseReleasedMs = [100, 1_000, 5_000]

export class DirectDeliveries {
  readonly #options: DirectDeliveriesOptions

  constructor(options: DirectDeliveriesOptions) {
    this.#options = options
  }

  /** Reserves the oldest waiter that can take the message. */
  reserve(item: NewMessage): DirectDelivery | undefined {
    if (!canPushDirectly(item)) return undefined
    const { deque, isPopping, nowMs } = this.#options
    const startedMs = nowMs()
    let examined = 0
    for (const group of deque.groupsOf(item.queue)) {
      if ((examined += 1) > examinedMax) return undefined
      const { source } = group.description
      const wanted = 'queue' in source ? source.partition : undefined
      if (wanted !== undefined && wanted !== item.partition) continue
      if (startedMs < group.directFromMs || isPopping(group)) continue
      for (const waiter of group.waiters) {
        if ((examined += 1) > examinedMax) return undefined
        if (isReservable(waiter)) return this.#reserve(group, waiter, startedMs)
      }
    }
    return undefined
  }

  /** A push could not deliver its message, or a pop needs the waiters: for a moment, pops get them. */
  suspend(group: WaitingGroup): void {
    group.directFromMs = this.#options.nowMs() + suspendedMs
  }

  #reserve(group: WaitingGroup, waiter: Waiter, startedMs: number): DirectDelivery {
    const { leaseMs, holder } = waiter.spec
    const demand = { leaseId: randomUUID(), group: group.description.group, leaseMs, holder }
    const free = (): void => {
      if (waiter.reservation === demand) waiter.reservation = undefined
    }
    waiter.reservation = demand
    const timer = setTimeout(free, reservedMsMax)
    return {
      demand,
      deliver: ({ lease, databaseTimeMs = 0 } = {}) => {
        clearTimeout(timer)
        free()
        if (lease === undefined) this.suspend(group)
        else this.#deliver(group, waiter, startedMs, lease, databaseTimeMs)
        this.#options.onDelivered(group)
      },
      outcomeUnknown: () => void this.#releaseUnknown(demand.leaseId),
    }
  }

  #deliver(
    group: WaitingGroup,
    waiter: Waiter,
    startedMs: number,
    lease: Lease,
    databaseTimeMs: number,
  ): void {
    const { deque, nowMs, release } = this.#options
    // The lease began before the commit, which may have taken long.
    const leaseMs = lease.expiresAtMs - databaseTimeMs
    if (nowMs() - startedMs > leaseMs / 2) void release(lease.leaseId).catch(() => {})
    else deque.deliver(group, waiter, startedMs, lease, databaseTimeMs)
  }

  async #releaseUnknown(leaseId: string): Promise<void> {
    for (const afterMs of unknownLeaseReleasedMs) {
      await delay(afterMs, undefined, { ref: false })
      const isReleased = await this.#options.release(leaseId).catch(() => false)
      if (isReleased) return
    }
  }
}

function isReservable(waiter: Waiter): boolean {
  const { inFlight, reservation, spec } = waiter
  const isFree = !inFlight && reservation === undefined
  return isFree && spec.autoAck !== true && spec.leasePerMessage !== true
}
