// One wait group, and the lock that lets one worker of this node at a time pop for it.
//
//   free      → granted    a hint, a request, a fallback poll; only while the group has waiters
//   granted   → popping    the worker reports that it began
//             → granted    no report in time: the grant is taken back and goes to the next worker
//             → free       the worker died; or declined (`unused`) and no other worker has waiters
//   popping   → granted    it found fewer messages than were hinted, and waiters are left: the wake chain
//                          it found nothing, but the group became dirty meanwhile
//             → retrying   contended
//             → free       it found nothing; or no waiters are left; or it failed; or the worker died
//   retrying  → granted    within 5 ms, or at once by a hint or request
//
// A hint that arrives in `granted` or `popping` makes the group dirty: the pop may have read before the
// commit that the hint reports. The next grant is always later than the hint, so every grant clears the mark.
// Without waiters nothing is kept: a new waiter starts with a query.
//
// A grant is `overdue` when its worker did not take it in time and no other responsive worker had waiters. It
// stays with its worker, but the first other worker that asks or is heard gets a grant in its place.
import type { WaitGroup } from '@rouse/protocol'
import { afterEmpty, type Backoff, startBackoff } from './backoff.ts'
import { type GroupKey, groupKey } from './group-key.ts'
import type { GrantOutcome, GrantSource, SidecarId } from './ports.ts'
import type { SharedStateSettings } from './settings.ts'
import { WorkerTurns } from './worker-turns.ts'

/** Why a group is granted. `from` is the worker that pushed or acked. */
export interface Cause {
  readonly source: GrantSource
  readonly from?: SidecarId | undefined
  /** The number of messages it reports. Absent: unknown. */
  readonly count?: number | undefined
  /** From a fallback poll: no hint and no pop had reached the group before. */
  readonly isUnannounced?: boolean | undefined
  /** When the cause arrived; absent: now. */
  readonly at?: number | undefined
}

export type GroupLock =
  | { readonly state: 'free' }
  | { readonly state: 'retrying' }
  | (Grant & { readonly state: 'granted'; readonly isOverdue: boolean })
  | (Grant & { readonly state: 'popping' })

export interface Grant {
  readonly grantId: number
  readonly sidecarId: SidecarId
  readonly cause: Cause
}

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
  /** Messages that were hinted and not found yet; Infinity if the number is unknown. */
  hintedCount: number
  /** The first version of `interests()` that includes this group. */
  interestVersion: number
  /** It was popped before all peers knew about its waiters. */
  poppedUnadvertised: boolean
}

export function createGroup(
  description: WaitGroup,
  now: number,
  settings: SharedStateSettings,
): GroupState {
  return {
    key: groupKey(description),
    description,
    waiters: new WorkerTurns(),
    lock: { state: 'free' },
    dirty: undefined,
    backoff: startBackoff(settings),
    checkedAt: now,
    hintedAt: Number.NEGATIVE_INFINITY,
    contendedInARow: 0,
    hintedCount: 0,
    interestVersion: 0,
    poppedUnadvertised: false,
  }
}

export function heldGrant(group: GroupState): Grant | undefined {
  const { lock } = group
  return lock.state === 'granted' || lock.state === 'popping' ? lock : undefined
}

/** Records the outcome of a pop. An empty pop that a hint overtook proves nothing. */
export function noteOutcome(
  group: GroupState,
  { outcome, found }: PopReport,
  now: number,
  settings: SharedStateSettings,
): void {
  if (outcome === 'messages') group.hintedCount = Math.max(0, group.hintedCount - found)
  else if (outcome === 'empty' && group.dirty === undefined) group.hintedCount = 0
  group.contendedInARow = outcome === 'contended' ? group.contendedInARow + 1 : 0
  if (outcome === 'contended' || outcome === 'unused') return
  group.checkedAt = now
  if (outcome === 'messages') group.backoff = startBackoff(settings)
  else if (outcome === 'error' || group.dirty === undefined) {
    group.backoff = afterEmpty(group.backoff, settings)
  }
}

export interface PopReport {
  readonly outcome: GrantOutcome
  /** Messages. */
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
