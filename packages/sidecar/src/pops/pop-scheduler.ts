// Schedules pops, both those that wait for messages and those that do not.
//
// A waiting pop registers first, so that no later push can miss it. It then requests the group's in-flight
// lock from the primary, which grants it unless it knows that there is nothing to pop. On a grant this worker
// pops once for all its waiters of the group, and its answer to the grant is the result. A pop that does
// not wait queries PostgreSQL at once, together with the pops of its group that arrived during the previous
// such call.
import { setTimeout as delay } from 'node:timers/promises'
import type { GrantOutcome, WaitGroup } from '@rouse/protocol'
import type { Coordinator, Grant } from '../coordinator.ts'
import type { LeaveSignal, PopResponse, PopSpec } from '../operation.ts'
import { SidecarError } from '../sidecar-error.ts'
import { Semaphore } from '../slots.ts'
import { connectionFailureOf } from '../writes/retry-split.ts'
import { DirectDeliveries } from './direct-delivery.ts'
import {
  nothing,
  type PopRun,
  type Waiter,
  type WaitingGroup,
  WaitingRequests,
  type WaitingRequestsOptions,
} from './waiting-requests.ts'

export interface PopSchedulerOptions extends WaitingRequestsOptions {
  readonly coordinator: Coordinator
  readonly waitersMax: number
  /** The deadline of a pop that does not wait. */
  readonly timeoutMs: number
  readonly onUnavailable: (error: SidecarError) => void
  /** Releases a lease. Resolves to whether it existed. */
  readonly releaseNow: (leaseId: string) => Promise<boolean>
  /** If a pop takes longer than this, the primary gets a notice that its grant has arrived. */
  readonly takenAfterMs: number
}

/**
 * The maximum number of concurrent pop calls, in total and per queue. More would only contend for the same
 * lanes. The limit per queue keeps a slot for other queues when all pops of one queue hang, for example
 * during a purge.
 */
export const popSlots = 4
const popSlotsPerQueue = 3
/** A waiter whose deadline passes during a pop waits this much longer for the result. */
const deadlineGraceMs = 40
const contendedDelayMs = 4
/** The number of waiters answered in one slice of a drain. Slices keep the event loop responsive. */
const drainSlice = 500

export class PopScheduler {
  readonly #options: PopSchedulerOptions
  /** The deque of waiting requests. */
  readonly deque: WaitingRequests
  readonly direct: DirectDeliveries
  /** Pops that do not wait for messages, only for their turn. */
  readonly #asking: WaitingRequests
  readonly #slots = new Semaphore(popSlots, popSlotsPerQueue)
  /** Waiters per group, as last reported to the primary. */
  readonly #reportedCount = new Map<string, number>()
  /** Groups of `#asking` that run a pop or wait for a slot. */
  readonly #asked = new Set<string>()
  /** Groups of `#waiting` that run a pop or wait for a slot. */
  readonly #popping = new Set<string>()
  readonly #running = new Set<Promise<void>>()
  #draining = false

  constructor(options: PopSchedulerOptions) {
    this.#options = options
    this.deque = new WaitingRequests(options)
    this.direct = new DirectDeliveries({
      deque: this.deque,
      isPopping: ({ key }) => this.#popping.has(key),
      onDelivered: (group) => this.#reportCount(group),
      release: options.releaseNow,
      nowMs: options.nowMs,
    })
    this.#asking = new WaitingRequests(options)
  }

  get waiting(): number {
    return this.deque.count
  }

  waitingByQueue(): Record<string, number> {
    const counts: Record<string, number> = Object.create(null) as Record<string, number>
    for (const { description, waiters } of this.deque.groups) {
      const { source } = description
      const name =
        'queue' in source ? source.queue : `${source.namespace ?? '*'}:${source.task ?? '*'}`
      counts[name] = (counts[name] ?? 0) + waiters.size
    }
    return counts
  }

  /** SQL calls so far, and the pops that shared them. */
  batches(): { readonly calls: number; readonly requests: number } {
    return {
      calls: this.deque.calls + this.#asking.calls,
      requests: this.deque.requests + this.#asking.requests,
    }
  }

  /** Pops without waiting for messages. */
  pop(spec: PopSpec, signal: LeaveSignal | undefined): Promise<PopResponse> {
    if (this.#asking.count >= this.#options.waitersMax) return Promise.reject(overloaded())
    return new Promise<PopResponse>((resolve, reject) => {
      const waiter = newWaiter(
        spec,
        false,
        this.#options.nowMs(),
        answered(resolve),
        answered(reject),
      )
      const group = this.#asking.add(waiter)
      // As with writes: a result that has already arrived wins over the deadline.
      const timer = setTimeout(() => {
        setImmediate(() => this.#asking.fail(group, waiter, late(waiter)))
      }, this.#options.timeoutMs)
      function answered<T>(answer: (value: T) => void): (value: T) => void {
        return (value) => {
          clearTimeout(timer)
          answer(value)
        }
      }
      signal?.addEventListener('abort', () => this.#asking.settle(group, waiter, nothing))
      this.#ask(group)
    })
  }

  popWait(spec: PopSpec, timeoutMs: number, signal: LeaveSignal): Promise<PopResponse> {
    if (this.#draining) return Promise.resolve({ ...nothing, draining: true })
    if (this.deque.count >= this.#options.waitersMax) return Promise.reject(overloaded())
    return new Promise<PopResponse>((resolve, reject) => {
      const waiter = newWaiter(
        spec,
        true,
        this.#options.nowMs(),
        (response) => {
          clearTimeout(timer)
          signal.removeEventListener('abort', onGone)
          resolve(response)
        },
        reject,
      )
      const group = this.deque.add(waiter)
      const onGone = (): void => this.#leave(group, waiter)
      const timer = setTimeout(() => this.#onDeadline(group, waiter), timeoutMs)
      signal.addEventListener('abort', onGone)
      if (signal.aborted) return onGone()
      this.#reportCount(group)
      // Without the database's time, a `new` subscription can begin only with a query.
      const unlessEmpty = this.deque.beginSubscription(waiter)
      this.#options.coordinator.requestGrant(group.description, { unlessEmpty })
    })
  }

  onGrant(grant: Grant): void {
    const group = this.deque.groupOf(grant.description)
    const { coordinator } = this.#options
    if (group === undefined || this.#draining) coordinator.releaseGroup(grant, 'unused', 0)
    // The primary took back an older grant, but the pop of that grant still runs for these waiters.
    else if (this.#popping.has(group.key)) coordinator.releaseGroup(grant, 'contended', 0)
    else this.#track(this.#popGranted(group, grant))
  }

  /**
   * Called when PostgreSQL answers again. Messages may have been committed meanwhile without a hint, so every
   * group pops.
   */
  recheckAll(): void {
    for (const group of this.deque.groups) this.#options.coordinator.requestGrant(group.description)
  }

  /** The primary has registered this worker. It ignored earlier reports, so they are sent again. */
  registered(): void {
    this.#reportedCount.clear()
    for (const group of this.deque.groups) this.#reportCount(group)
    this.recheckAll()
  }

  /** Answers all waiters, in slices, and finishes the calls in flight. */
  async drain(): Promise<void> {
    this.#draining = true
    let answered = 0
    for (const group of this.deque.groups) {
      for (const waiter of group.waiters) {
        this.deque.settle(group, waiter, { ...nothing, draining: true })
        answered += 1
        if (answered % drainSlice === 0) await delay(1)
      }
      this.#reportCount(group)
    }
    while (this.#running.size > 0) await Promise.all(this.#running)
  }

  async #popGranted(group: WaitingGroup, grant: Grant): Promise<void> {
    let outcome: GrantOutcome = 'error'
    let found = 0
    this.#popping.add(group.key)
    const { coordinator } = this.#options
    const taken = this.#confirmIfSlow(grant)
    try {
      // Waiters that arrive during this loop get their turn after the waiters of other workers.
      let left = group.waiters.size
      let run: PopRun
      do {
        run = await this.#popInSlot(this.deque, group.description, grant)
        // All waiters may be reserved for pushes in flight. The next grant comes first.
        if (run.served === 0) this.direct.suspend(group)
        if (run.outcome !== 'unused' || found === 0) outcome = run.outcome
        found += run.found
        left -= run.served
      } while (run.more && left > 0)
    } catch (error) {
      // Waiters keep waiting: `recheckAll` or a fallback poll finds what they missed.
      this.#failureOf(error)
    }
    clearTimeout(taken)
    this.#popping.delete(group.key)
    this.#reportCount(group)
    coordinator.releaseGroup(grant, outcome, found)
  }

  /** Confirms the grant at once if its pop must wait for a slot, otherwise when the pop takes long. */
  #confirmIfSlow(grant: Grant): NodeJS.Timeout | undefined {
    const { coordinator, takenAfterMs } = this.#options
    if (this.#popping.size <= popSlotsPerQueue) {
      return setTimeout(() => coordinator.grantTaken(grant), takenAfterMs)
    }
    coordinator.grantTaken(grant)
    return undefined
  }

  #ask(group: WaitingGroup): void {
    if (this.#asked.has(group.key)) return
    this.#asked.add(group.key)
    this.#track(this.#askAll(group))
  }

  async #askAll({ key, description }: WaitingGroup): Promise<void> {
    for (;;) {
      // Looked up by description: a group without waiters is removed, and may be created again during a pop.
      const group = this.#asking.groupOf(description)
      if (group === undefined) break
      try {
        const { outcome } = await this.#popInSlot(this.#asking, description, { source: 'poll' })
        // A locked lane may have a message, so an empty answer would be wrong. The loop continues until the
        // lock is released or the pop times out.
        if (outcome === 'contended') await delay(contendedDelayMs)
      } catch (error) {
        const failure = this.#failureOf(error)
        for (const waiter of group.waiters) this.#asking.fail(group, waiter, failure)
      }
    }
    this.#asked.delete(key)
  }

  #popInSlot(
    requests: WaitingRequests,
    description: WaitGroup,
    { source = 'request', waitedMs = 0 }: Pick<Grant, 'source' | 'waitedMs'>,
  ): Promise<PopRun> {
    const urgency = requests === this.deque ? 'urgent' : 'patient'
    // Pops of the same queue tend to hang together, so the semaphore limits them by queue.
    const kind = 'queue' in description.source ? description.source.queue : ''
    return this.#slots.use(() => requests.popFor(description, source, waitedMs), urgency, kind)
  }

  /** The error for the client. A failed pop counts as a read, so its outcome is never reported as unknown. */
  #failureOf(error: unknown): SidecarError {
    const failure = connectionFailureOf(error)
    if (failure.code === 'database_unavailable') this.#options.onUnavailable(failure)
    return failure
  }

  #onDeadline(group: WaitingGroup, waiter: Waiter): void {
    const mayGetMessages = waiter.inFlight || waiter.reservation !== undefined
    if (mayGetMessages) setTimeout(() => this.#leave(group, waiter), deadlineGraceMs)
    else this.#leave(group, waiter)
  }

  #leave(group: WaitingGroup, waiter: Waiter): void {
    this.deque.settle(group, waiter, nothing)
    this.#reportCount(group)
  }

  /** Reports the number of waiters to the primary if it changed. */
  #reportCount(group: WaitingGroup): void {
    // Looked up again: the group may have been removed and created again during a pop of the old one.
    const count = this.deque.groupOf(group.description)?.waiters.size ?? 0
    if ((this.#reportedCount.get(group.key) ?? 0) === count) return
    if (count === 0) this.#reportedCount.delete(group.key)
    else this.#reportedCount.set(group.key, count)
    this.#options.coordinator.setWaiting(group.description, count)
  }

  #track(work: Promise<void>): void {
    this.#running.add(work)
    void work.finally(() => this.#running.delete(work))
  }
}

function newWaiter(
  spec: PopSpec,
  waits: boolean,
  sinceMs: number,
  resolve: (response: PopResponse) => void,
  reject: (error: SidecarError) => void,
): Waiter {
  return { spec, waits, settled: false, inFlight: false, sinceMs, resolve, reject }
}

function overloaded(): SidecarError {
  return new SidecarError('overloaded', 'too many pops are waiting on this worker')
}

/**
 * If the call in flight acknowledges on delivery, messages may be lost, so the outcome is unknown. Without
 * auto-ack, a lease that arrives late is released.
 */
function late({ inFlight, spec }: Waiter): SidecarError {
  const mayHaveTaken = inFlight && spec.autoAck === true
  return new SidecarError(
    mayHaveTaken ? 'outcome_unknown' : 'database_unavailable',
    'PostgreSQL did not answer in time',
  )
}
