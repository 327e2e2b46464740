// Moves the locks of groups between the states of group-state.ts. A wake-up grants the lock to one worker, so
// that no other worker wakes and no second round trip is needed. Grants are numbered; an answer to a grant
// that was taken back changes nothing.
import { startBackoff } from './backoff.ts'
import { DeadlineQueue } from './deadline-queue.ts'
import {
  afterPop,
  type Cause,
  type Grant,
  type GroupState,
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
  readonly onGranted: (group: GroupState) => void
  /** The lock is free again, and `checkedAt` or the backoff may have changed. */
  readonly onFree: (group: GroupState) => void
  readonly onUnused: (group: GroupState, sidecarId: SidecarId) => void
  /** A pop has shown what a fallback poll found. */
  readonly onChecked: (found: 'nothing' | 'unannounced') => void
  readonly onFault: (fault: MomentaryFault) => void
}

export class WakePath {
  readonly #context: WakePathContext
  readonly #untaken: DeadlineQueue<GroupState>
  readonly #popping: DeadlineQueue<GroupState>
  /** Members of `#popping` whose worker may have stopped. */
  readonly #watched: DeadlineQueue<GroupState>
  readonly #retries: DeadlineQueue<GroupState>
  readonly #slowRetries: DeadlineQueue<GroupState>
  readonly #silent: SilentSidecars
  readonly #overdue = new Set<GroupState>()
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

  /** There may be work. If only a fallback poll says so, the backoff stays until the pop confirms it. */
  wake(group: GroupState, cause: Cause, now: number): void {
    group.hintedAt = now
    if (cause.source !== 'fallback') group.backoff = startBackoff(this.#context.settings)
    group.hintedCount += cause.count ?? Number.POSITIVE_INFINITY
    this.#check(group, group.waiters.next(this.#silent.all), cause, now)
  }

  /** Requests a new waiter's first query. A pop by another worker serves as well if it starts from now on. */
  request(group: GroupState, sidecarId: SidecarId, now: number): void {
    const asker = group.waiters.of(sidecarId) > 0 ? sidecarId : undefined
    group.hintedCount = Number.POSITIVE_INFINITY
    this.#check(group, asker, { source: 'request' }, now)
  }

  /** Takes a free lock for a worker that starts its pop right away. */
  acquire(group: GroupState, sidecarId: SidecarId, now: number): number | undefined {
    if (heldGrant(group) !== undefined) return undefined
    group.hintedCount = Number.POSITIVE_INFINITY
    const grant = this.#lock(group, sidecarId, { source: 'request' })
    this.#context.counters.granted('request')
    this.#begin(group, grant, now)
    return grant.grantId
  }

  taken(group: GroupState, grantId: number, now: number): boolean {
    const grant = heldGrant(group)
    if (grant?.grantId !== grantId) {
      this.#context.counters.late += 1
      return false
    }
    if (group.lock.state === 'granted') this.#begin(group, grant, now)
    return true
  }

  release(group: GroupState, grantId: number, report: PopReport, now: number): boolean {
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
    if (grant.cause.isUnannounced === true) this.#noteCheck(group, outcome)
    const next = afterPop(group, outcome, grant.cause)
    if (next.step === 'grant') this.#grantNext(group, next.cause, now)
    else if (next.step === 'retry') this.#retryLater(group, now)
    else this.#settle(group)
    return true
  }

  /** A silent worker is alive again. It takes over groups whose overdue grant belongs to another worker. */
  heard(sidecarId: SidecarId, now: number): void {
    if (!this.#silent.heard(sidecarId, now)) return
    for (const group of this.#overdue) {
      const grant = heldGrant(group)
      if (grant === undefined || grant.sidecarId === sidecarId) continue
      if (group.waiters.of(sidecarId) > 0) this.#grantNext(group, grant.cause, now)
    }
  }

  /** Frees a worker's grants. The caller announces what the worker may have written. */
  sidecarGone(groups: Iterable<GroupState>, sidecarId: SidecarId): void {
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

  #check(group: GroupState, sidecarId: SidecarId | undefined, cause: Cause, now: number): void {
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
    // A wake-up replaces a request, so that the counters see it.
    if (group.dirty === undefined || group.dirty.source === 'request') {
      group.dirty = { ...cause, at: now }
    }
  }

  #grantNext(group: GroupState, cause: Cause, now: number): void {
    const sidecarId = group.waiters.next(this.#silent.all)
    this.#unlock(group)
    if (sidecarId === undefined) this.#settle(group)
    else this.#grant(group, sidecarId, cause, now)
  }

  #grant(group: GroupState, sidecarId: SidecarId, cause: Cause, now: number): void {
    const { grantId } = this.#lock(group, sidecarId, { ...cause, at: cause.at ?? now })
    this.#untaken.add(group, now)
    const source = sourceFor(cause, sidecarId)
    this.#context.counters.granted(source)
    this.#context.grant(sidecarId, group.key, grantId, source)
  }

  #lock(group: GroupState, sidecarId: SidecarId, cause: Cause): Grant {
    this.#unlock(group)
    this.#lastGrantId += 1
    const grant = { grantId: this.#lastGrantId, sidecarId, cause }
    group.lock = { state: 'granted', isOverdue: false, ...grant }
    group.dirty = undefined
    group.waiters.hadTurn(sidecarId)
    this.#context.onGranted(group)
    return grant
  }

  #begin(group: GroupState, grant: Grant, now: number): void {
    this.#untaken.delete(group)
    this.#overdue.delete(group)
    group.lock = { ...grant, state: 'popping' }
    this.#popping.add(group, now)
    this.#watched.add(group, now)
  }

  #noteLatency({ cause, sidecarId }: Grant, now: number): void {
    this.#context.counters.found(sourceFor(cause, sidecarId), now - (cause.at ?? now))
  }

  /** A hint that arrived during the pop may concern the messages it found. */
  #noteCheck(group: GroupState, outcome: PopReport['outcome']): void {
    const isFound = outcome === 'messages' && !isWake(group.dirty)
    if (isFound) this.#context.onChecked('unannounced')
    else if (outcome === 'empty') this.#context.onChecked('nothing')
  }

  #unlock(group: GroupState): void {
    group.lock = { state: 'free' }
    this.#overdue.delete(group)
    for (const queue of [this.#untaken, this.#popping, this.#watched]) queue.delete(group)
    for (const queue of [this.#retries, this.#slowRetries]) queue.delete(group)
  }

  #settle(group: GroupState): void {
    group.dirty = undefined
    this.#context.onFree(group)
  }

  #retryLater(group: GroupState, now: number): void {
    const isSlow = group.contendedInARow > this.#context.settings.contendedRetriesMax
    group.lock = { state: 'retrying' }
    const queue = isSlow ? this.#slowRetries : this.#retries
    queue.add(group, now)
  }

  #deliveryTimedOut(group: GroupState, now: number): void {
    const grant = heldGrant(group)
    if (grant === undefined) return
    this.#context.counters.deliveryTimeouts += 1
    this.#passOver(group, grant, now)
  }

  /**
   * A worker that is alive waits for PostgreSQL, and any other would wait as well. A silent one has stopped
   * while it holds the group's lock.
   */
  #popIsSlow(group: GroupState, now: number): void {
    const grant = heldGrant(group)
    if (grant === undefined) return
    if (this.#silent.isSilent(grant.sidecarId, now)) this.#passOver(group, grant, now)
    else this.#watched.add(group, now)
  }

  /** Grants the next worker. If no other worker has waiters, the grant goes to the first that asks. */
  #passOver(group: GroupState, grant: Grant, now: number): void {
    const isWakeLate = grant.cause.source !== 'request' || isWake(group.dirty)
    this.#silent.add(grant.sidecarId)
    const next = group.waiters.next(this.#silent.all)
    if (next !== undefined && this.#silent.all.has(next)) {
      group.lock = { ...grant, state: 'granted', isOverdue: true }
      this.#overdue.add(group)
      this.#popping.add(group, now)
    } else this.#grantNext(group, grant.cause, now)
    // A late first query of a waiter means a busy worker, not a lost hint.
    if (isWakeLate) this.#context.onFault('grant_untaken')
  }

  /** The worker is alive but does not answer: the pop counts as failed. */
  #popTimedOut(group: GroupState, now: number): void {
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
