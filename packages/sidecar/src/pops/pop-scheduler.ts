// Pops, waiting and not.
//
// A pop that waits registers first, so that no push after this moment can miss it; then asks the primary for the
// group's in-flight lock; a grant makes this worker pop once for all its waiters of the group. A pop that does not
// wait asks PostgreSQL at once, together with others of its group that came while the last such call was under way.
import { setTimeout as delay } from 'node:timers/promises'
import type { Coordinator, Grant, GrantOutcome } from '../coordinator.ts'
import type { LeaveSignal, PopResponse, PopSpec } from '../operation.ts'
import { SidecarError } from '../sidecar-error.ts'
import { noPop, type PopRun, type PopRunnerPorts, runPop, settle } from './pop-batch.ts'
import type { Semaphore } from './slots.ts'
import { nothing, type Waiter, type WaitingGroup, WaitingRequests } from './waiting-requests.ts'

export interface PopSchedulerOptions extends PopRunnerPorts {
  readonly coordinator: Coordinator
  readonly slots: Semaphore
  readonly waitersMax: number
  /** A pop that asks once is answered within this time. */
  readonly timeoutMs: number
  /** Turns what a call threw into an error for the client, and tells the circuit breaker. */
  readonly translate: (error: unknown) => SidecarError
}

/** A deadline that passes while a pop is under way waits this long for its answer. */
const deadlineGraceMs = 40
const contendedDelayMs = 4
/** WaitingRequests answered in one slice of a drain, so that the event loop lives on. */
const drainSlice = 500

export class PopScheduler {
  readonly #options: PopSchedulerOptions
  readonly #waiting = new WaitingRequests()
  readonly #asking = new WaitingRequests()
  /** How many wait by group, as the primary was told last. */
  readonly #announced = new Map<string, number>()
  readonly #asked = new Set<string>()
  /** Groups with a pop under way, or in line for a slot. */
  readonly #popping = new Set<string>()
  readonly #running = new Set<Promise<void>>()
  #draining = false

  constructor(options: PopSchedulerOptions) {
    this.#options = options
  }

  get waiting(): number {
    return this.#waiting.count
  }

  waitingByQueue(): Record<string, number> {
    const counts: Record<string, number> = Object.create(null) as Record<string, number>
    for (const { description, waiters } of this.#waiting.groups) {
      const { source } = description
      const name =
        'queue' in source ? source.queue : `${source.namespace ?? '*'}:${source.task ?? '*'}`
      counts[name] = (counts[name] ?? 0) + waiters.size
    }
    return counts
  }

  /** Asks once. */
  pop(spec: PopSpec, signal: LeaveSignal | undefined): Promise<PopResponse> {
    if (this.#asking.count >= this.#options.waitersMax) return Promise.reject(overloaded())
    return new Promise<PopResponse>((resolve, reject) => {
      const waiter = newWaiter(spec, false, answered(resolve), answered(reject))
      const group = this.#asking.add(waiter)
      // As with writes: an answer that has come already goes first.
      const timer = setTimeout(() => {
        setImmediate(() => fail(this.#asking, group, waiter, late(waiter)))
      }, this.#options.timeoutMs)
      function answered<T>(tell: (value: T) => void): (value: T) => void {
        return (value) => {
          clearTimeout(timer)
          tell(value)
        }
      }
      signal?.addEventListener('abort', () => settle(this.#asking, group, waiter, nothing))
      this.#ask(group)
    })
  }

  popWait(spec: PopSpec, timeoutMs: number, signal: LeaveSignal): Promise<PopResponse> {
    if (this.#draining) return Promise.resolve({ ...nothing, draining: true })
    if (this.#waiting.count >= this.#options.waitersMax) return Promise.reject(overloaded())
    return new Promise<PopResponse>((resolve, reject) => {
      const waiter = newWaiter(
        spec,
        true,
        (outcome) => {
          clearTimeout(timer)
          signal.removeEventListener('abort', onGone)
          resolve(outcome)
        },
        reject,
      )
      const group = this.#waiting.add(waiter)
      const onGone = (): void => this.#leave(group, waiter)
      const timer = setTimeout(() => this.#onDeadline(group, waiter), timeoutMs)
      signal.addEventListener('abort', onGone)
      if (signal.aborted) return onGone()
      this.#announce(group)
      this.#options.coordinator.requestGrant(group.description)
    })
  }

  onGrant(grant: Grant): void {
    const group = this.#waiting.groupOf(grant.description)
    const { coordinator } = this.#options
    coordinator.grantTaken(grant)
    if (group === undefined || this.#draining) coordinator.releaseGroup(grant, 'unused', 0)
    // An older grant was taken back, but its pop goes on with those who wait here.
    else if (this.#popping.has(group.key)) coordinator.releaseGroup(grant, 'contended', 0)
    else this.#track(this.#popGranted(group, grant))
  }

  /** PostgreSQL is back: whatever came in meanwhile was not announced. */
  recheckAll(): void {
    for (const group of this.#waiting.groups)
      this.#options.coordinator.requestGrant(group.description)
  }

  /** The primary knows this worker from now on: what it was told before, it passed over. */
  registered(): void {
    this.#announced.clear()
    for (const group of this.#waiting.groups) this.#announce(group)
    this.recheckAll()
  }

  /** Answers everybody who waits, in slices, and finishes the calls under way. */
  async drain(): Promise<void> {
    this.#draining = true
    let answered = 0
    for (const group of this.#waiting.groups) {
      for (const waiter of group.waiters) {
        settle(this.#waiting, group, waiter, { ...nothing, draining: true })
        answered += 1
        if (answered % drainSlice === 0) await delay(1)
      }
      this.#announce(group)
    }
    while (this.#running.size > 0) await Promise.all(this.#running)
  }

  async #popGranted(group: WaitingGroup, grant: Grant): Promise<void> {
    let outcome: GrantOutcome = 'error'
    let found = 0
    this.#popping.add(group.key)
    try {
      // Those who come meanwhile have their turn after the other workers' waiters.
      let left = group.waiters.size
      let run: PopRun
      do {
        run = await this.#options.slots.use(() => this.#popFor(grant), 'urgent', kindOf(group))
        if (run.outcome !== 'unused' || found === 0) outcome = run.outcome
        found += run.found
        left -= run.served
      } while (run.more && left > 0)
    } catch (error) {
      // WaitingRequests keep waiting: the database's return or a fallback check finds what they missed.
      this.#options.translate(error)
    }
    this.#popping.delete(group.key)
    this.#announce(group)
    this.#options.coordinator.releaseGroup(grant, outcome, found)
  }

  /** For those who wait now: all of the group may have left, and others come, while there was no slot. */
  async #popFor({ description }: Grant): Promise<PopRun> {
    const group = this.#waiting.groupOf(description)
    return group === undefined ? noPop : runPop(this.#waiting, group, this.#options)
  }

  #ask(group: WaitingGroup): void {
    if (this.#asked.has(group.key)) return
    this.#asked.add(group.key)
    this.#track(this.#askAll(group))
  }

  async #askAll(group: WaitingGroup): Promise<void> {
    while (group.waiters.size > 0) {
      try {
        const { outcome } = await this.#options.slots.use(
          () => runPop(this.#asking, group, this.#options),
          'patient',
          kindOf(group),
        )
        // A locked lane may hold a message: "nothing" would not be true. Its lock ends, or the pop's own time does.
        if (outcome === 'contended') await delay(contendedDelayMs)
      } catch (error) {
        const failure = this.#options.translate(error)
        for (const waiter of group.waiters) fail(this.#asking, group, waiter, failure)
      }
    }
    this.#asked.delete(group.key)
    // A waiter that came after the loop saw none is in a new group of the same key.
    const again = this.#asking.groupOf(group.description)
    if (again !== undefined) this.#ask(again)
  }

  #onDeadline(group: WaitingGroup, waiter: Waiter): void {
    if (waiter.inFlight) setTimeout(() => this.#leave(group, waiter), deadlineGraceMs)
    else this.#leave(group, waiter)
  }

  #leave(group: WaitingGroup, waiter: Waiter): void {
    settle(this.#waiting, group, waiter, nothing)
    this.#announce(group)
  }

  /** Tells the primary how many wait, where that changed. */
  #announce(group: WaitingGroup): void {
    // By key: the group may have been forgotten and born again while a pop of the old one was under way.
    const count = this.#waiting.groupOf(group.description)?.waiters.size ?? 0
    if ((this.#announced.get(group.key) ?? 0) === count) return
    if (count === 0) this.#announced.delete(group.key)
    else this.#announced.set(group.key, count)
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
  resolve: (outcome: PopResponse) => void,
  reject: (error: SidecarError) => void,
): Waiter {
  return { spec, waits, settled: false, inFlight: false, settle: resolve, fail: reject }
}

function fail(
  waiters: WaitingRequests,
  group: WaitingGroup,
  waiter: Waiter,
  error: SidecarError,
): void {
  if (waiter.settled) return
  waiter.settled = true
  waiters.remove(group, waiter)
  waiter.fail(error)
}

/** Pops of one queue hang together, where they do. */
function kindOf({ description: { source } }: WaitingGroup): string {
  return 'queue' in source ? source.queue : ''
}

function overloaded(): SidecarError {
  return new SidecarError('overloaded', 'too many pops wait on this worker')
}

/** Messages that were acknowledged with their delivery may be gone; a lease is given back once the call ends. */
function late({ inFlight, spec }: Waiter): SidecarError {
  const mayHaveTaken = inFlight && spec.autoAck === true
  return new SidecarError(
    mayHaveTaken ? 'outcome_unknown' : 'database_unavailable',
    'PostgreSQL did not answer in time',
  )
}
