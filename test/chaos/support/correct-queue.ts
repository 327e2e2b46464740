// A small model of a correct queue: two lanes, one group, and the promises about leases, attempts and
// crashes. It has no clock: the caller passes the time.
import type { AckedItem } from '../history/records.ts'

export interface Entry {
  readonly value: string
  readonly seq: number
  attempts: number
  state: 'fresh' | 'leased' | 'again' | 'done' | 'dead'
}

export interface Lease {
  readonly lane: Lane
  readonly entries: Entry[]
  readonly wasFresh: boolean
  expiresAt: number
}

export interface Lane {
  readonly partition: string
  readonly entries: Entry[]
  lease: Lease | undefined
}

export const leaseMs = 1_000
export const retryLimit = 1

export class CorrectQueue {
  readonly lanes: readonly Lane[] = ['p', 'q'].map((partition) => ({
    partition,
    entries: [],
    lease: undefined,
  }))
  /** Leases without a later durable commit; a crash may forget them. */
  readonly #volatile = new Set<Lease>()

  push(lane: Lane, values: readonly string[]): ('queued' | 'duplicate')[] {
    this.#volatile.clear()
    return values.map((value) => {
      if (lane.entries.some((entry) => entry.value === value)) return 'duplicate'
      lane.entries.push({ value, seq: lane.entries.length + 1, attempts: 0, state: 'fresh' })
      return 'queued'
    })
  }

  /** One lease per lane. Redelivered messages come one at a time, in order, before new ones. */
  pop(lane: Lane, batch: number, now: number): Lease | undefined {
    this.#expire(lane, now)
    if (lane.lease !== undefined) return undefined
    const again = lane.entries.find(({ state }) => state === 'again')
    const fresh = lane.entries.filter(({ state }) => state === 'fresh').slice(0, batch)
    const entries = again === undefined ? fresh : [again]
    if (entries.length === 0) return undefined
    for (const entry of entries) {
      entry.state = 'leased'
      entry.attempts += 1
    }
    lane.lease = { lane, entries, wasFresh: again === undefined, expiresAt: now + leaseMs }
    this.#volatile.add(lane.lease)
    return lane.lease
  }

  /** Returns false if the lease is over, or if the entry was already acknowledged. */
  acknowledge(lease: Lease, entry: Entry, status: AckedItem['status'], now: number): boolean {
    if (!this.#stands(lease, now) || !lease.entries.includes(entry)) return false
    lease.entries.splice(lease.entries.indexOf(entry), 1)
    if (status === 'completed') entry.state = 'done'
    else if (status === 'failed' && entry.attempts > retryLimit) entry.state = 'dead'
    else entry.state = 'again'
    if (status === 'retry') entry.attempts -= 1
    if (lease.entries.length === 0) lease.lane.lease = undefined
    this.#volatile.clear()
    return true
  }

  release(lease: Lease, now: number): boolean {
    if (!this.#stands(lease, now)) return false
    this.#giveBack(lease, 'again')
    this.#volatile.clear()
    return true
  }

  extend(lease: Lease, byMs: number, now: number): boolean {
    if (!this.#stands(lease, now)) return false
    lease.expiresAt = Math.max(lease.expiresAt, now + byMs)
    this.#volatile.clear()
    return true
  }

  /** Forgets the newest leases as if they had never existed. */
  crash(): void {
    for (const lease of this.#volatile) {
      if (lease.lane.lease === lease) this.#giveBack(lease, lease.wasFresh ? 'fresh' : 'again')
    }
    this.#volatile.clear()
  }

  isDrained(lane: Lane): boolean {
    return lane.entries.every(({ state }) => state === 'done' || state === 'dead')
  }

  dead(): Entry[] {
    return this.lanes.flatMap(({ entries }) => entries.filter(({ state }) => state === 'dead'))
  }

  #stands(lease: Lease, now: number): boolean {
    this.#expire(lease.lane, now)
    return lease.lane.lease === lease
  }

  #expire(lane: Lane, now: number): void {
    const { lease } = lane
    if (lease === undefined || lease.expiresAt > now) return
    for (const entry of lease.entries) entry.state = entry.attempts > retryLimit ? 'dead' : 'again'
    lane.lease = undefined
    this.#volatile.clear()
  }

  #giveBack(lease: Lease, state: 'fresh' | 'again'): void {
    for (const entry of lease.entries) {
      entry.state = state
      entry.attempts -= 1
    }
    lease.lane.lease = undefined
  }
}
