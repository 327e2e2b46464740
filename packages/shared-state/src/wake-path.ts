// Moves the locks of groups, as group-state.ts tells it: a wake is a grant of the lock to one worker,
// so that nobody else wakes and no second round trip is needed. Grants are numbered; an answer to a
// grant that was taken back meanwhile changes nothing.
import { startBackoff } from './backoff.ts'
import { DeadlineQueue } from './deadline-queue.ts'
import {
  afterPop,
  type Cause,
  type Grant,
  type Group,
  heldGrant,
  noteOutcome,
  type PopReport,
} from './group-state.ts'
import type { MomentaryFault } from './poll-mode.ts'
import type { GrantSource, SharedStatePorts, SidecarId } from './ports.ts'
import type { SharedStateSettings } from './settings.ts'
import { SilentSidecars } from './silent-sidecars.ts'
import type { WakeCounters } from './wake-counters.ts'

export interface WakePathContext {
  readonly settings: SharedStateSettings
  readonly counters: WakeCounters
  readonly grant: SharedStatePorts['grant']
  readonly onGranted: (group: Group) => void
  /** The lock is free again, and `checkedAt` or the backoff may have moved. */
  readonly onFree: (group: Group) => void
  readonly onUnused: (group: Group, sidecarId: SidecarId) => void
  /** A pop has told what a fallback check had found. */
  readonly onChecked: (found: 'nothing' | 'unannounced') => void
  readonly onFault: (fault: MomentaryFault) => void
}

export class WakePath {
  readonly #context: WakePathContext
  readonly #untaken: DeadlineQueue<Group>
  readonly #popping: DeadlineQueue<Group>
  /** Those of `#popping` whose worker may have stopped. */
  readonly #watched: DeadlineQueue<Group>
  readonly #retries: DeadlineQueue<Group>
  readonly #slowRetries: DeadlineQueue<Group>
  readonly #silent: SilentSidecars
  readonly #overdue = new Set<Group>()
  #lastGrantId = 0

  constructor(context: WakePathContext) {
    const { settings } = context
    this.#context = context
    this.#untaken = new DeadlineQueue(settings.deliveryTimeoutMs)
    this.#popping = new DeadlineQueue(settings.popDurationMaxMs)
    this.#watched = new DeadlineQueue(settings.sidecarSilentMs)
    this.#silent = new SilentSidecars(settings.sidecarSilentMs)
    this.#retries = new DeadlineQueue(settings.contendedRetryMs)
    this.#slowRetries = new DeadlineQueue(settings.baseIntervalMs)
  }

  /** There may be work. Where only a check says so, the ladder waits for the pop's word. */
  wake(group: Group, cause: Cause, now: number): void {
    group.hintedAt = now
    if (cause.source !== 'fallback') group.backoff = startBackoff(this.#context.settings)
    group.announced += cause.count ?? Number.POSITIVE_INFINITY
    this.#check(group, group.waiters.next(this.#silent.all), cause, now)
  }

  /** A new waiter wants its first query; that of another worker, begun from now on, does as well. */
  request(group: Group, sidecarId: SidecarId, now: number): void {
    const asker = group.waiters.of(sidecarId) > 0 ? sidecarId : undefined
    group.announced = Number.POSITIVE_INFINITY
    this.#check(group, asker, { source: 'request' }, now)
  }

  /** Takes a free lock for a worker that begins its pop right away. */
  acquire(group: Group, sidecarId: SidecarId, now: number): number | undefined {
    if (heldGrant(group) !== undefined) return undefined
    group.announced = Number.POSITIVE_INFINITY
    const grant = this.#lock(group, sidecarId, { source: 'request' })
    this.#context.counters.granted('request')
    this.#begin(group, grant, now)
    return grant.grantId
  }

  taken(group: Group, grantId: number, now: number): boolean {
    const grant = heldGrant(group)
    if (grant?.grantId !== grantId) {
      this.#context.counters.late += 1
      return false
    }
    if (group.lock.state === 'granted') this.#begin(group, grant, now)
    return true
  }

  release(group: Group, grantId: number, report: PopReport, now: number): boolean {
    const { outcome } = report
    const grant = heldGrant(group)
    if (grant?.grantId !== grantId) {
      this.#context.counters.late += 1
      return false
    }
    this.#unlock(group)
    if (outcome === 'unused') this.#context.onUnused(group, grant.sidecarId)
    noteOutcome(group, report, now, this.#context.settings)
    if (outcome === 'contended') this.#context.counters.contended += 1
    if (outcome === 'messages') this.#noteLatency(grant, now)
    if (outcome === 'error') this.#context.onFault('fetch_error')
    if (grant.cause.isNews === true) this.#noteCheck(group, outcome)
    const next = afterPop(group, outcome, grant.cause)
    if (next.step === 'grant') this.#grantNext(group, next.cause, now)
    else if (next.step === 'retry') this.#retryLater(group, now)
    else this.#settle(group)
    return true
  }

  /** A worker that was silent lives, and may pop where another's overdue grant stands in its way. */
  heard(sidecarId: SidecarId, now: number): void {
    if (!this.#silent.heard(sidecarId, now)) return
    for (const group of this.#overdue) {
      const grant = heldGrant(group)
      if (grant === undefined || grant.sidecarId === sidecarId) continue
      if (group.waiters.of(sidecarId) > 0) this.#grantNext(group, grant.cause, now)
    }
  }

  /** Frees what a worker held. What it may have done is for the caller to announce. */
  sidecarGone(groups: Iterable<Group>, sidecarId: SidecarId): void {
    this.#silent.forget(sidecarId)
    for (const group of groups) {
      if (heldGrant(group)?.sidecarId !== sidecarId) continue
      this.#unlock(group)
      this.#settle(group)
    }
  }

  nextTickAt(): number {
    return Math.min(
      this.#untaken.firstDueAt(),
      this.#popping.firstDueAt(),
      this.#watched.firstDueAt(),
      this.#retries.firstDueAt(),
      this.#slowRetries.firstDueAt(),
    )
  }

  tick(now: number): void {
    for (const group of this.#untaken.takeDue(now)) this.#deliveryTimedOut(group, now)
    for (const group of this.#popping.takeDue(now)) this.#popTimedOut(group, now)
    for (const group of this.#watched.takeDue(now)) this.#popIsSlow(group, now)
    for (const queue of [this.#retries, this.#slowRetries]) {
      for (const group of queue.takeDue(now)) this.#grantNext(group, { source: 'chain' }, now)
    }
  }

  #check(group: Group, sidecarId: SidecarId | undefined, cause: Cause, now: number): void {
    if (sidecarId === undefined) return
    const { lock } = group
    const isHeld = lock.state === 'granted' || lock.state === 'popping'
    const canReplace = lock.state === 'granted' && lock.isOverdue && lock.sidecarId !== sidecarId
    if (!isHeld || canReplace) {
      this.#unlock(group)
      this.#grant(group, sidecarId, cause, now)
      return
    }
    if (group.dirty === undefined) this.#context.counters.dirtied += 1
    // A wake says more than a request, for whoever counts them.
    if (group.dirty === undefined || group.dirty.source === 'request') {
      group.dirty = { ...cause, at: now }
    }
  }

  #grantNext(group: Group, cause: Cause, now: number): void {
    const sidecarId = group.waiters.next(this.#silent.all)
    this.#unlock(group)
    if (sidecarId === undefined) this.#settle(group)
    else this.#grant(group, sidecarId, cause, now)
  }

  #grant(group: Group, sidecarId: SidecarId, cause: Cause, now: number): void {
    const { grantId } = this.#lock(group, sidecarId, { ...cause, at: cause.at ?? now })
    this.#untaken.add(group, now)
    const source = sourceFor(cause, sidecarId)
    this.#context.counters.granted(source)
    this.#context.grant(sidecarId, group.key, grantId, source)
  }

  #lock(group: Group, sidecarId: SidecarId, cause: Cause): Grant {
    this.#unlock(group)
    this.#lastGrantId += 1
    const grant = { grantId: this.#lastGrantId, sidecarId, cause }
    group.lock = { state: 'granted', isOverdue: false, ...grant }
    group.dirty = undefined
    group.waiters.hadTurn(sidecarId)
    this.#context.onGranted(group)
    return grant
  }

  #begin(group: Group, grant: Grant, now: number): void {
    this.#untaken.delete(group)
    this.#overdue.delete(group)
    group.lock = { ...grant, state: 'popping' }
    this.#popping.add(group, now)
    this.#watched.add(group, now)
  }

  #noteLatency({ cause, sidecarId }: Grant, now: number): void {
    this.#context.counters.found(sourceFor(cause, sidecarId), now - (cause.at ?? now))
  }

  /** A hint that came during the pop may be of what it found. */
  #noteCheck(group: Group, outcome: PopReport['outcome']): void {
    const isFound = outcome === 'messages' && !isWake(group.dirty)
    if (isFound) this.#context.onChecked('unannounced')
    else if (outcome === 'empty') this.#context.onChecked('nothing')
  }

  #unlock(group: Group): void {
    group.lock = { state: 'free' }
    this.#overdue.delete(group)
    for (const queue of [this.#untaken, this.#popping, this.#watched]) queue.delete(group)
    for (const queue of [this.#retries, this.#slowRetries]) queue.delete(group)
  }

  #settle(group: Group): void {
    group.dirty = undefined
    this.#context.onFree(group)
  }

  #retryLater(group: Group, now: number): void {
    const isSlow = group.contendedInARow > this.#context.settings.contendedRetriesMax
    group.lock = { state: 'retrying' }
    const queue = isSlow ? this.#slowRetries : this.#retries
    queue.add(group, now)
  }

  #deliveryTimedOut(group: Group, now: number): void {
    const grant = heldGrant(group)
    if (grant === undefined) return
    this.#context.counters.deliveryTimeouts += 1
    this.#passOver(group, grant, now)
  }

  /** A worker that lives waits for PostgreSQL, and another would wait as well. One that says nothing at all has
   * stopped, with everybody's lock in its hands. */
  #popIsSlow(group: Group, now: number): void {
    const grant = heldGrant(group)
    if (grant === undefined) return
    if (this.#silent.isSilent(grant.sidecarId, now)) this.#passOver(group, grant, now)
    else this.#watched.add(group, now)
  }

  /** The next worker's turn; where nobody else waits, that of the first other one that asks. */
  #passOver(group: Group, grant: Grant, now: number): void {
    const isWakeLate = grant.cause.source !== 'request' || isWake(group.dirty)
    this.#silent.add(grant.sidecarId)
    const next = group.waiters.next(this.#silent.all)
    if (next !== undefined && this.#silent.all.has(next)) {
      group.lock = { ...grant, state: 'granted', isOverdue: true }
      this.#overdue.add(group)
      this.#popping.add(group, now)
    } else this.#grantNext(group, grant.cause, now)
    // A waiter's own first query that comes late tells of a busy worker; no hint went astray.
    if (isWakeLate) this.#context.onFault('grant_untaken')
  }

  /** The worker is alive and says nothing: its pop is worth no more than one that failed. */
  #popTimedOut(group: Group, now: number): void {
    const grant = heldGrant(group)
    if (grant === undefined) return
    this.#context.counters.popTimeouts += 1
    this.release(group, grant.grantId, { outcome: 'error', found: 0 }, now)
    this.#silent.add(grant.sidecarId)
  }
}

function isWake(cause: Cause | undefined): boolean {
  return cause !== undefined && cause.source !== 'request'
}

function sourceFor({ source, from }: Cause, sidecarId: SidecarId): GrantSource {
  return source === 'local' && from !== sidecarId ? 'ipc' : source
}
