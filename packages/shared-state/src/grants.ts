// Grants the locks of wait groups to workers: which worker pops, what follows its pop, and what happens when
// the worker does not answer. A wake-up grants the lock to one worker, so that no other worker wakes and no
// second round trip is needed. Grants are numbered; an answer to a grant that was taken back changes nothing.
//
//   wake, request       → the lock is acquired for one worker, or the group becomes dirty
//   taken, release      → the pop begins; the pop ends, and wait-group.ts decides what follows
//   tick                → a grant that was not taken goes to the next worker; a contended group is retried;
//                         a pop that does not end is abandoned
//   heard, sidecarGone  → a silent worker is alive again; the grants of a worker that is gone are free
import { DeadlineQueue } from './group-table.ts'
import type { MomentaryFault } from './poll-mode.ts'
import type { SharedStatePorts, SidecarId } from './ports.ts'
import type { SharedStateSettings } from './settings.ts'
import type { WakeCounters } from './stats.ts'
import {
  afterPop,
  type Cause,
  type GroupState,
  type HeldGrant,
  heldGrant,
  isWake,
  markDirty,
  noteOutcome,
  type PopReport,
  sourceFor,
} from './wait-group.ts'

export interface GrantsContext {
  readonly settings: SharedStateSettings
  readonly counters: WakeCounters
  /** Takes the lock for a grant; undefined while another worker holds it. */
  readonly tryAcquire: (sidecarId: SidecarId, group: GroupState, cause: Cause) => number | undefined
  readonly grant: SharedStatePorts['grant']
  /** The lock is free again, and `checkedAt` or the backoff may have changed. */
  readonly onFree: (group: GroupState) => void
  readonly onUnused: (group: GroupState, sidecarId: SidecarId) => void
  /** A pop has ended. */
  readonly onPopped: (group: GroupState, outcome: PopReport['outcome']) => void
  /** A pop has shown whether a fallback poll really found work. */
  readonly onChecked: (group: GroupState, outcome: PopReport['outcome']) => void
  readonly onFault: (fault: MomentaryFault) => void
}

export class Grants {
  readonly #context: GrantsContext
  readonly #untaken: DeadlineQueue<GroupState>
  readonly #popping: DeadlineQueue<GroupState>
  /** Members of `#popping` whose worker may have stopped. */
  readonly #watched: DeadlineQueue<GroupState>
  readonly #retries: DeadlineQueue<GroupState>
  readonly #slowRetries: DeadlineQueue<GroupState>
  readonly #overdue = new Set<GroupState>()
  /** Workers that did not take a grant, or stopped during a pop, and have not been heard since. */
  readonly #silent = new Set<SidecarId>()
  readonly #heardAt = new Map<SidecarId, number>()
  #lastGrantId = 0

  constructor(context: GrantsContext) {
    const { settings } = context
    this.#context = context
    this.#untaken = new DeadlineQueue(settings.deliveryTimeoutMs)
    this.#popping = new DeadlineQueue(settings.popDurationMaxMs)
    this.#watched = new DeadlineQueue(settings.sidecarSilentMs)
    this.#retries = new DeadlineQueue(settings.contendedRetryMs)
    this.#slowRetries = new DeadlineQueue(settings.baseIntervalMs)
  }

  /** Grants a pop because there may be work. */
  wake(group: GroupState, cause: Cause, now: number): void {
    group.hintedAt = now
    group.hintedCount += cause.count ?? Number.POSITIVE_INFINITY
    this.#grant(group, group.waiters.next(this.#silent), cause, now)
  }

  /** Requests a new waiter's first query. A pop by another worker is as good if it starts after this call. */
  request(group: GroupState, sidecarId: SidecarId, now: number): void {
    const asker = group.waiters.of(sidecarId) > 0 ? sidecarId : undefined
    group.hintedCount = Number.POSITIVE_INFINITY
    this.#grant(group, asker, { source: 'request' }, now)
  }

  /** Takes the lock. Undefined while another worker holds it with a grant that is not overdue. */
  acquire(group: GroupState, sidecarId: SidecarId, cause: Cause, now: number): number | undefined {
    const { lock } = group
    const canReplace = lock.state === 'granted' && lock.isOverdue && lock.sidecarId !== sidecarId
    if (heldGrant(group) !== undefined && !canReplace) return undefined
    this.#unlock(group)
    this.#lastGrantId += 1
    const grant = {
      grantId: this.#lastGrantId,
      sidecarId,
      cause: { ...cause, at: cause.at ?? now },
    }
    group.lock = { state: 'granted', isOverdue: false, ...grant }
    group.dirty = undefined
    group.poppedUnadvertised ||= !group.isAdvertised
    group.waiters.hadTurn(sidecarId)
    this.#untaken.add(group, now)
    this.#count(grant)
    return grant.grantId
  }

  taken(group: GroupState, grantId: number, now: number): boolean {
    const grant = this.#held(group, grantId)
    if (grant === undefined) return false
    if (group.lock.state === 'popping') return true
    this.#untaken.delete(group)
    this.#overdue.delete(group)
    group.lock = { ...grant, state: 'popping' }
    this.#popping.add(group, now)
    this.#watched.add(group, now)
    return true
  }

  release(group: GroupState, grantId: number, report: PopReport, now: number): boolean {
    const { outcome } = report
    const { counters, settings, onUnused, onFault, onChecked, onPopped } = this.#context
    const grant = this.#held(group, grantId)
    if (grant === undefined) return false
    this.#unlock(group)
    if (outcome === 'unused') onUnused(group, grant.sidecarId)
    noteOutcome(group, report, grant.cause.at ?? now, now, settings)
    if (outcome === 'contended') counters.contended += 1
    if (outcome === 'empty') counters.emptyPops[sourceFor(grant.cause, grant.sidecarId)] += 1
    if (outcome === 'messages') this.#noteLatency(grant, now)
    if (outcome === 'error') onFault('fetch_error')
    if (grant.cause.isUnannounced === true) onChecked(group, outcome)
    const next = afterPop(group, outcome, grant.cause)
    if (next.step === 'grant') this.#grantNext(group, next.cause, now)
    else if (next.step === 'retry') this.#retryLater(group, now)
    else this.#settle(group)
    onPopped(group, outcome)
    return true
  }

  /** A worker is alive. One that had been silent takes over the overdue grants of others. */
  heard(sidecarId: SidecarId, now: number): void {
    this.#heardAt.set(sidecarId, now)
    if (!this.#silent.delete(sidecarId)) return
    for (const group of this.#overdue) {
      const grant = heldGrant(group)
      if (grant === undefined || grant.sidecarId === sidecarId) continue
      if (group.waiters.of(sidecarId) > 0) this.#grantNext(group, grant.cause, now)
    }
  }

  /** Frees a worker's grants. The caller announces what the worker may have written. */
  sidecarGone(groups: Iterable<GroupState>, sidecarId: SidecarId): void {
    this.#silent.delete(sidecarId)
    this.#heardAt.delete(sidecarId)
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

  #grantNext(group: GroupState, cause: Cause, now: number): void {
    const sidecarId = group.waiters.next(this.#silent)
    this.#unlock(group)
    if (sidecarId === undefined) this.#settle(group)
    else this.#grant(group, sidecarId, cause, now)
  }

  /** Grants nothing if no worker has waiters. */
  #grant(group: GroupState, sidecarId: SidecarId | undefined, cause: Cause, now: number): void {
    const { tryAcquire, grant, counters } = this.#context
    if (sidecarId === undefined) {
      // The waiters of the pop in flight have left. If it finds nothing, that does not prove that the group
      // is empty.
      if (heldGrant(group) !== undefined) markDirty(group, cause, now)
      return
    }
    const grantId = tryAcquire(sidecarId, group, cause)
    if (grantId !== undefined) {
      const waitedMs = now - (cause.at ?? now)
      grant(sidecarId, group.description, grantId, sourceFor(cause, sidecarId), waitedMs)
      return
    }
    if (group.dirty === undefined) counters.dirtied += 1
    markDirty(group, cause, now)
  }

  #held(group: GroupState, grantId: number): HeldGrant | undefined {
    const grant = heldGrant(group)
    if (grant?.grantId === grantId) return grant
    this.#context.counters.late += 1
    return undefined
  }

  #count({ cause, sidecarId }: HeldGrant): void {
    const { counters } = this.#context
    const source = sourceFor(cause, sidecarId)
    if (source === 'request') counters.requests += 1
    else counters.wakes[source] += 1
  }

  #noteLatency({ cause, sidecarId }: HeldGrant, now: number): void {
    const source = sourceFor(cause, sidecarId)
    if (source === 'request') return
    this.#context.counters.latencies[source].record(now - (cause.at ?? now))
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
   * If the worker is alive, it waits for PostgreSQL, and any other worker would wait, too. If it is silent,
   * it has stopped while it holds the group's lock, and the next worker gets the grant.
   */
  #popIsSlow(group: GroupState, now: number): void {
    const grant = heldGrant(group)
    if (grant === undefined) return
    const heardAt = this.#heardAt.get(grant.sidecarId) ?? Number.NEGATIVE_INFINITY
    const isSilent = now - heardAt >= this.#context.settings.sidecarSilentMs
    if (isSilent) this.#passOver(group, grant, now)
    else this.#watched.add(group, now)
  }

  /**
   * Grants the lock to the next worker. If no other responsive worker has waiters, the grant becomes overdue,
   * and the first other worker that asks or is heard gets it.
   */
  #passOver(group: GroupState, grant: HeldGrant, now: number): void {
    const isWakeLate = isWake(grant.cause) || isWake(group.dirty)
    this.#silent.add(grant.sidecarId)
    const next = group.waiters.next(this.#silent)
    if (next !== undefined && this.#silent.has(next)) {
      group.lock = { ...grant, state: 'granted', isOverdue: true }
      this.#overdue.add(group)
      this.#popping.add(group, now)
    } else this.#grantNext(group, grant.cause, now)
    // If only a waiter's first query is late, the worker is busy, and no hint was lost.
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
