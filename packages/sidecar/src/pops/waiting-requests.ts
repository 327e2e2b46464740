// The deque of waiting pops, and the SQL call that serves it. One call serves all waiters of a wait group.
// SQL distributes the lanes: oldest waiter first, one lane each before any waiter gets a second.
//
// A waiter settles exactly once: by messages, its deadline, a disconnect, a failure or a drain. A lease that
// arrives for a settled waiter is released.

import type { GrantOutcome, WaitGroup } from '@rouse/protocol'
import { type Executor, type Lease, type PopRequest, type PopResult, pop } from '@rouse/storage'
import type { SidecarObserver } from '../observer.ts'
import type { PopResponse, PopSpec } from '../operation.ts'
import type { SidecarError } from '../sidecar-error.ts'
import { retrying } from '../writes/retry-split.ts'

export interface WaitingRequestsOptions {
  readonly executor: Executor
  /** Whether leases survive a crash of the database. */
  readonly durable: boolean
  /** The maximum bytes of payload and headers in one response. */
  readonly bytesMax: number
  /** From 0 to 1, for jitter. */
  readonly random: () => number
  /** Monotonic milliseconds. */
  readonly nowMs: () => number
  /** A rate withholds messages until this time of the database's clock. */
  readonly onBlocked: (untilMs: number) => void
  /** Releases a lease that came too late for its waiter. */
  readonly release: (leaseId: string) => void
  readonly observer?: SidecarObserver | undefined
}

export interface Waiter {
  spec: PopSpec
  /** False for a pop that does not wait for messages. */
  readonly waits: boolean
  settled: boolean
  /** A pop in flight includes this waiter. */
  inFlight: boolean
  /** The waiter is to get the message of a push in flight. */
  reservation?: object | undefined
  /** When it began to wait. */
  readonly sinceMs: number
  readonly resolve: (response: PopResponse) => void
  readonly reject: (error: SidecarError) => void
}

export interface WaitingGroup {
  readonly key: string
  readonly description: WaitGroup
  /** Oldest first. */
  readonly waiters: Set<Waiter>
  /** The partition where the last pop of this group found messages: the next pop starts after it. */
  after: string
  /** Before this time no push reserves a waiter of the group. */
  directFromMs: number
}

/** One pop for the waiters of a group. */
export interface PopRun {
  readonly outcome: GrantOutcome
  /** The number of messages. */
  readonly found: number
  /** The number of waiters that the call included. */
  readonly served: number
  /** The call was full: it left out some waiters of the group. */
  readonly more: boolean
}

/** The maximum numbers of waiters and of messages in one call: a longer call would delay the other groups. */
const demandsMax = 100
const messagesMax = 2_000

/**
 * How long the database's time is derived from its last result. After that the clocks may differ by more than
 * a few milliseconds, or a failover may have changed the clock. A subscription that starts too late would
 * miss messages.
 */
const databaseTimeTrustedMs = 30_000

const unused: PopRun = { outcome: 'unused', found: 0, served: 0, more: false }

export const nothing: PopResponse = { leases: [], paused: false, draining: false }

export class WaitingRequests {
  readonly #options: WaitingRequestsOptions
  readonly #groups = new Map<string, WaitingGroup>()
  /** The groups that wait for one queue or a partition of it. */
  readonly #byQueue = new Map<string, Set<WaitingGroup>>()
  /** Waiters of all groups. */
  count = 0
  /** SQL calls, and the pops that shared them. */
  calls = 0
  requests = 0
  /** The database's time in the last result, and when it arrived. */
  #databaseTime: { readonly databaseMs: number; readonly atMs: number } | undefined

  constructor(options: WaitingRequestsOptions) {
    this.#options = options
  }

  get groups(): IterableIterator<WaitingGroup> {
    return this.#groups.values()
  }

  groupOf(description: WaitGroup): WaitingGroup | undefined {
    return this.#groups.get(groupKey(description))
  }

  /** The groups that wait for the queue or a partition of it. */
  groupsOf(queue: string): Iterable<WaitingGroup> {
    return this.#byQueue.get(queue) ?? []
  }

  add(waiter: Waiter): WaitingGroup {
    const description = { source: waiter.spec.source, group: waiter.spec.group }
    const key = groupKey(description)
    let group = this.#groups.get(key)
    if (group === undefined) {
      group = { key, description, waiters: new Set(), after: '0', directFromMs: 0 }
      this.#groups.set(key, group)
      this.#index(group)
    }
    group.waiters.add(waiter)
    this.count += 1
    return group
  }

  /**
   * A `new` subscription starts when its waiter begins to wait, even if the queue is created later. Returns
   * false if the database's time is not known: then the waiter's first query is the start.
   */
  beginSubscription(waiter: Waiter): boolean {
    if (waiter.spec.subscription !== 'new') return true
    if (this.#databaseTime === undefined) return false
    const { databaseMs, atMs } = this.#databaseTime
    const elapsedMs = this.#options.nowMs() - atMs
    if (elapsedMs > databaseTimeTrustedMs) return false
    this.#subscribeFrom(waiter, databaseMs + elapsedMs)
    return true
  }

  settle(group: WaitingGroup, waiter: Waiter, response: PopResponse): void {
    if (this.#remove(group, waiter)) waiter.resolve(response)
  }

  fail(group: WaitingGroup, waiter: Waiter, error: SidecarError): void {
    if (this.#remove(group, waiter)) waiter.reject(error)
  }

  /**
   * Pops once for the waiters of a group and settles those that get messages. Rejects if the call fails.
   * `source`, `hintMs`: what caused the pop, and how long before its grant, for stats.
   */
  async popFor(description: WaitGroup, source = 'request', hintMs = 0): Promise<PopRun> {
    // Looked up by description: the group may have been removed, and created again, while no slot was free.
    const group = this.groupOf(description)
    if (group === undefined) return unused
    const { served, more } = chooseWaiters(group)
    // All waiters are reserved for pushes in flight.
    if (served.length === 0)
      return group.waiters.size > 0 ? { ...unused, outcome: 'contended' } : unused
    const startedMs = this.#options.nowMs()
    const result = await this.#pop(group, served)
    group.after = result.leases.at(-1)?.partitionId ?? group.after
    this.#observe(description, served, result, { source, hintMs, startedMs })
    this.#distribute(group, served, result)
    const outcome = result.status === 'paused' ? 'empty' : result.status
    const found = result.leases.reduce((sum, lease) => sum + lease.messages.length, 0)
    return { outcome, found, served: served.length, more: more && outcome === 'messages' }
  }

  /** Settles a waiter with the message of a push. */
  deliver(
    group: WaitingGroup,
    waiter: Waiter,
    startedMs: number,
    lease: Lease,
    databaseTimeMs: number,
  ): void {
    const result: PopResult = {
      status: 'messages',
      databaseTimeMs,
      opensAtMs: null,
      leases: [lease],
    }
    this.#observe(group.description, [waiter], result, { source: 'push', hintMs: 0, startedMs })
    this.#distribute(group, [waiter], result)
  }

  async #pop(group: WaitingGroup, served: readonly Waiter[]): Promise<PopResult> {
    const { executor, random } = this.#options
    const request = this.#toRequest(group, served)
    this.calls += 1
    this.requests += served.length
    for (const waiter of served) waiter.inFlight = true
    try {
      const result = await retrying(() => pop(executor, request), random)
      this.#databaseTime = { databaseMs: result.databaseTimeMs, atMs: this.#options.nowMs() }
      if (result.opensAtMs !== null) this.#options.onBlocked(result.opensAtMs)
      return result
    } finally {
      for (const waiter of served) waiter.inFlight = false
    }
  }

  #toRequest({ description, after }: WaitingGroup, served: readonly Waiter[]): PopRequest {
    const { durable, bytesMax } = this.#options
    return {
      source: description.source,
      group: description.group,
      // The subscription matters only if the call creates the consumer group. The subscription of the oldest
      // waiter is used.
      subscription: served[0]?.spec.subscription,
      after,
      durable,
      bytesMax,
      demands: served.map(
        ({ spec: { batch, partitions, leaseMs, autoAck, leasePerMessage, holder } }) => ({
          batch,
          partitions,
          leaseMs,
          autoAck,
          leasePerMessage,
          holder,
        }),
      ),
    }
  }

  #observe(
    { source: wanted, group }: WaitGroup,
    served: readonly Waiter[],
    result: PopResult,
    cause: { readonly source: string; readonly hintMs: number; readonly startedMs: number },
  ): void {
    const { leases, databaseTimeMs, opensAtMs } = result
    const { observer, nowMs } = this.#options
    if (opensAtMs !== null && 'queue' in wanted) {
      observer?.limited?.(wanted.queue, group, opensAtMs, databaseTimeMs)
    }
    if (leases.length === 0 || observer === undefined) return
    const { source, hintMs, startedMs } = cause
    observer.delivered(leases, {
      databaseTimeMs,
      source,
      group,
      hintMs,
      popMs: nowMs() - startedMs,
      waitedMs: ({ demand }) => startedMs - (served[demand]?.sinceMs ?? startedMs),
      holder: ({ demand }) => served[demand]?.spec.holder ?? '',
      isAutoAcked: ({ demand }) => served[demand]?.spec.autoAck === true,
    })
  }

  #distribute(group: WaitingGroup, served: readonly Waiter[], result: PopResult): void {
    const byDemand = groupByDemand(result.leases)
    served.forEach((waiter, demand) => {
      const leases = byDemand.get(demand)
      if (leases === undefined) this.#foundNothing(group, waiter, result)
      else if (!waiter.settled) this.settle(group, waiter, { ...nothing, leases })
      // The waiter left or timed out during the call. Messages acknowledged on delivery are lost with it.
      else if (waiter.spec.autoAck !== true) {
        for (const leaseId of leaseIdsOf(leases)) this.#options.release(leaseId)
      }
    })
  }

  #foundNothing(group: WaitingGroup, waiter: Waiter, result: PopResult): void {
    if (waiter.spec.subscription === 'new') this.#subscribeFrom(waiter, result.databaseTimeMs)
    if (waiter.waits || result.status === 'contended') return
    // Other waiters of the call got messages, and a lane may have been busy, so the next pop includes this
    // waiter again.
    if (result.status === 'messages') return
    this.settle(group, waiter, { ...nothing, paused: result.status === 'paused' })
  }

  #subscribeFrom(waiter: Waiter, fromMs: number): void {
    waiter.spec = { ...waiter.spec, subscription: { fromMs } }
  }

  #index(group: WaitingGroup): void {
    const { source } = group.description
    if (!('queue' in source)) return
    const known = this.#byQueue.get(source.queue)
    if (known === undefined) this.#byQueue.set(source.queue, new Set([group]))
    else known.add(group)
  }

  #unindex(group: WaitingGroup): void {
    const { source } = group.description
    if (!('queue' in source)) return
    const known = this.#byQueue.get(source.queue)
    known?.delete(group)
    if (known?.size === 0) this.#byQueue.delete(source.queue)
  }

  /** False if the waiter has already settled. Removes a group without waiters. */
  #remove(group: WaitingGroup, waiter: Waiter): boolean {
    if (waiter.settled) return false
    waiter.settled = true
    group.waiters.delete(waiter)
    this.count -= 1
    if (group.waiters.size === 0) {
      this.#groups.delete(group.key)
      this.#unindex(group)
    }
    return true
  }
}

function chooseWaiters(group: WaitingGroup): { served: Waiter[]; more: boolean } {
  const served: Waiter[] = []
  let messages = 0
  for (const waiter of group.waiters) {
    if (waiter.inFlight || waiter.reservation !== undefined) continue
    messages += waiter.spec.batch
    if (served.length >= demandsMax || (served.length > 0 && messages > messagesMax)) {
      return { served, more: true }
    }
    served.push(waiter)
  }
  return { served, more: false }
}

/** One id for all, unless the waiter wanted a lease per message. */
function leaseIdsOf(leases: readonly Lease[]): ReadonlySet<string> {
  return new Set(leases.map(({ leaseId }) => leaseId))
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

function groupKey({ source, group }: WaitGroup): string {
  return 'queue' in source
    ? JSON.stringify([source.queue, source.partition ?? null, group])
    : JSON.stringify([source.namespace ?? null, source.task ?? null, null, group])
}
