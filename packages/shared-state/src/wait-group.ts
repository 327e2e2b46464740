// One wait group: its waiters, its backoff, and the lock that lets one worker of this node at a time pop for
// it.
//
//   free      → granted    a hint, a request, a fallback poll; only while the group has waiters
//   granted   → popping    the worker reports that its pop began; it does so only for a long pop, and an answer
//                          in `granted` has the same consequences as in `popping`
//             → granted    no report in time: the grant is taken back and goes to the next worker
//             → free       the worker died; or it declined (`unused`) and no other worker has waiters
//   popping   → granted    the pop found fewer messages than were hinted, and waiters remain: the wake chain
//                          the pop found nothing, but the group became dirty meanwhile
//             → retrying   contended
//             → free       the pop found nothing or failed; or no waiters are left; or the worker died
//   retrying  → granted    within 5 ms, or at once by a hint or request
//
// A hint that arrives in `granted` or `popping` makes the group dirty: the pop may have read before the
// commit that the hint reports. The next grant is always later than the hint, so every grant clears the dirty
// mark. Without waiters the mark matters only until the pop ends: an empty pop of a dirty group proves nothing.
//
// A grant is `overdue` when its worker did not take it in time and no other responsive worker had waiters.
// The grant stays with its worker, but the first other worker that asks or is heard gets a grant in its
// place.
import type { GrantOutcome, WaitGroup, WakeHint } from '@rouse/protocol'
import type { GrantSource, GroupKey, SidecarId } from './ports.ts'
import type { SharedStateSettings } from './settings.ts'

export interface GroupState {
  readonly key: GroupKey
  readonly description: WaitGroup
  readonly waiters: WorkerTurns
  lock: GroupLock
  dirty: Cause | undefined
  backoff: Backoff
  /** When a poll or pop last showed whether there is work. */
  checkedAt: number
  hintedAt: number
  contendedInARow: number
  /**
   * Messages that were hinted and not found yet; Infinity if the number is unknown, as it is at the start.
   * With 0 and a recent empty pop the group is known to be empty, as long as hints can be trusted.
   */
  hintedCount: number
  /** When the last empty pop began that no hint overlapped. */
  emptyAt: number
  /**
   * Since when only the numbers in hints show that everything was found. A fallback poll verifies them;
   * Infinity: nothing to verify.
   */
  unverifiedSince: number
  /** The first version of `interests()` that includes this group; 0: none yet. */
  interestVersion: number
  /** Every peer knows the group's waiters, so the group can rely on hints. */
  isAdvertised: boolean
  /** The group was popped before all peers knew about its waiters. */
  poppedUnadvertised: boolean
}

export type GroupLock =
  | { readonly state: 'free' }
  | { readonly state: 'retrying' }
  | (HeldGrant & { readonly state: 'granted'; readonly isOverdue: boolean })
  | (HeldGrant & { readonly state: 'popping' })

export interface HeldGrant {
  readonly grantId: number
  readonly sidecarId: SidecarId
  readonly cause: Cause
}

/** Why the lock of a group is granted. `from` is the worker that pushed or acked. */
export interface Cause {
  readonly source: GrantSource
  readonly from?: SidecarId | undefined
  /** The number of messages that the cause reports. Absent: unknown. */
  readonly count?: number | undefined
  /** From a fallback poll: no hint and no pop had reached the group before. */
  readonly isUnannounced?: boolean | undefined
  /** When the cause arrived; absent: now. */
  readonly at?: number | undefined
}

/**
 * The number of messages a hint reports; undefined: unknown. A hint for a single consumer group reports a
 * freed lane, whose redelivered messages are not counted.
 */
export function countOf({ count, group }: WakeHint): number | undefined {
  const isForAll = group === undefined || group === null
  return isForAll && count !== undefined && count > 0 ? count : undefined
}

export function createGroup(
  key: GroupKey,
  description: WaitGroup,
  now: number,
  settings: SharedStateSettings,
): GroupState {
  return {
    key,
    description,
    waiters: new WorkerTurns(),
    lock: { state: 'free' },
    dirty: undefined,
    backoff: startBackoff(settings),
    checkedAt: now,
    hintedAt: Number.NEGATIVE_INFINITY,
    contendedInARow: 0,
    hintedCount: Number.POSITIVE_INFINITY,
    emptyAt: Number.NEGATIVE_INFINITY,
    unverifiedSince: Number.POSITIVE_INFINITY,
    interestVersion: 0,
    isAdvertised: false,
    poppedUnadvertised: false,
  }
}

export function heldGrant(group: GroupState): HeldGrant | undefined {
  const { lock } = group
  return lock.state === 'granted' || lock.state === 'popping' ? lock : undefined
}

/** Keeps a cause that cannot be granted now, because a pop is in flight. */
export function markDirty(group: GroupState, cause: Cause, now: number): void {
  // A wake-up that is kept already stays. The request of a new waiter is replaced, so that a wake-up after it is
  // counted.
  if (isWake(group.dirty)) return
  group.dirty = { ...cause, at: now }
}

export function isWake(cause: Cause | undefined): boolean {
  return cause !== undefined && cause.source !== 'request'
}

/** A push is `local` to the worker that made it, and arrives at the others by IPC. */
export function sourceFor({ source, from }: Cause, sidecarId: SidecarId): GrantSource {
  return source === 'local' && from !== sidecarId ? 'ipc' : source
}

/** Records the outcome of a pop. An empty pop proves nothing if a hint arrived meanwhile. */
export function noteOutcome(
  group: GroupState,
  { outcome, found }: PopReport,
  grantedAt: number,
  now: number,
  settings: SharedStateSettings,
): void {
  if (outcome === 'messages') {
    group.hintedCount = Math.max(0, group.hintedCount - found)
    if (group.hintedCount === 0) group.unverifiedSince = Math.min(group.unverifiedSince, now)
  } else if (outcome === 'empty' && group.dirty === undefined) {
    foundEmpty(group)
    group.emptyAt = grantedAt
  }
  group.contendedInARow = outcome === 'contended' ? group.contendedInARow + 1 : 0
  if (outcome === 'contended' || outcome === 'unused') return
  group.checkedAt = now
  if (outcome === 'messages') group.backoff = startBackoff(settings)
  else if (outcome === 'error' || group.dirty === undefined) {
    group.backoff = afterEmpty(group.backoff, settings)
  }
}

/** A pop or poll that no hint overlapped found nothing. */
export function foundEmpty(group: GroupState): void {
  group.hintedCount = 0
  group.unverifiedSince = Number.POSITIVE_INFINITY
}

/**
 * Whether a new waiter can do without a first query: a pop found the group empty, all peers knew its waiters
 * by then, and every hint since was followed by pops that found all it reported. The group has stayed in
 * the table and in the advertised interest since, so the new waiter is in the same position as one that has
 * waited since that pop: hints reach the group, and fallback polls find what hints miss.
 */
export function isKnownEmpty(group: GroupState, since: number): boolean {
  const isReached = group.isAdvertised && !group.poppedUnadvertised
  return isReached && group.hintedCount === 0 && group.emptyAt >= since
}

export interface PopReport {
  readonly outcome: GrantOutcome
  /** The number of messages. */
  readonly found: number
}

export type NextStep =
  | { readonly step: 'grant'; readonly cause: Cause }
  | { readonly step: 'retry' }
  | { readonly step: 'free' }

/** The next step after a pop. */
export function afterPop(group: GroupState, outcome: GrantOutcome, cause: Cause): NextStep {
  if (group.waiters.total === 0) return { step: 'free' }
  switch (outcome) {
    case 'messages': {
      const isAllFound = group.hintedCount === 0 && group.dirty === undefined
      return isAllFound ? { step: 'free' } : { step: 'grant', cause: { source: 'chain' } }
    }
    case 'empty':
      return group.dirty === undefined ? { step: 'free' } : { step: 'grant', cause: group.dirty }
    case 'unused':
      return { step: 'grant', cause }
    case 'contended':
      return { step: 'retry' }
    case 'error':
      return { step: 'free' }
  }
}

/**
 * The group backoff: the interval between fallback polls while hints cannot be trusted. It starts at the base
 * interval. From the threshold on, each empty poll multiplies it, up to the maximum. Any sign of work resets
 * it.
 */
export interface Backoff {
  readonly intervalMs: number
  readonly consecutiveEmpty: number
}

type BackoffSettings = Pick<
  SharedStateSettings,
  'baseIntervalMs' | 'maxIntervalMs' | 'backoffThreshold' | 'backoffMultiplier'
>

export function startBackoff({ baseIntervalMs }: Pick<BackoffSettings, 'baseIntervalMs'>): Backoff {
  return { intervalMs: baseIntervalMs, consecutiveEmpty: 0 }
}

export function afterEmpty(backoff: Backoff, settings: BackoffSettings): Backoff {
  const consecutiveEmpty = backoff.consecutiveEmpty + 1
  const intervalMs =
    consecutiveEmpty < settings.backoffThreshold
      ? backoff.intervalMs
      : Math.min(backoff.intervalMs * settings.backoffMultiplier, settings.maxIntervalMs)
  return { intervalMs, consecutiveEmpty }
}

/** The workers with waiters for one group. The next turn belongs to the worker whose last grant is oldest. */
export class WorkerTurns {
  // In turn order: a granted worker moves to the end.
  readonly #counts = new Map<SidecarId, number>()
  #total = 0

  get total(): number {
    return this.#total
  }

  of(sidecarId: SidecarId): number {
    return this.#counts.get(sidecarId) ?? 0
  }

  set(sidecarId: SidecarId, count: number): void {
    this.#total += count - this.of(sidecarId)
    if (count > 0) this.#counts.set(sidecarId, count)
    else this.#counts.delete(sidecarId)
  }

  /** Workers in `passedOver` get a turn only if there is no other worker. */
  next(passedOver: ReadonlySet<SidecarId>): SidecarId | undefined {
    for (const sidecarId of this.#counts.keys()) {
      if (!passedOver.has(sidecarId)) return sidecarId
    }
    return this.#counts.keys().next().value
  }

  hadTurn(sidecarId: SidecarId): void {
    const count = this.of(sidecarId)
    if (count === 0) return
    this.#counts.delete(sidecarId)
    this.#counts.set(sidecarId, count)
  }
}
