// One group of waiters, and the lock that lets one worker of this node pop for it at a time.
//
//   free      → granted    a hint, a request, a fallback check; only while somebody waits
//   granted   → popping    the worker says that it began
//             → granted    nobody said so in time: taken back, the next worker's turn
//             → free       the worker died; or declined (`unused`) and nobody else waits
//   popping   → granted    it found messages, fewer than were announced, and somebody still waits: the wake chain
//                          it found nothing, but the group was made dirty meanwhile
//             → retrying   contended
//             → free       it found nothing; or nobody waits any more; or it failed; the worker died
//   retrying  → granted    within 5 ms, or at once by a hint or request
//
// A hint that meets `granted` or `popping` makes the group dirty: the pop may have read before the
// commit that the hint tells of. Whatever is granted next was granted after the hint, so every grant
// clears the mark. With no waiters nothing is kept: who comes to wait later queries by itself first.
//
// An `overdue` grant is one that its worker did not take in time while no other worker that answers
// waited. It stands, but the first other one that asks or is heard gets a grant in its place.
import type { WaitGroup } from '@rouse/protocol'
import { afterEmpty, type Backoff, startBackoff } from './backoff.ts'
import { type GroupKey, groupKey } from './group-key.ts'
import type { GrantOutcome, GrantSource, SidecarId } from './ports.ts'
import type { SharedStateSettings } from './settings.ts'
import { WorkerTurns } from './worker-turns.ts'

/** Why a group is granted. `from` is the worker whose push or ack it was. */
export interface Cause {
  readonly source: GrantSource
  readonly from?: SidecarId | undefined
  /** How many messages it tells of. Absent: nobody knows. */
  readonly count?: number | undefined
  /** Of a fallback check: no hint and no pop had got to the group before. */
  readonly isNews?: boolean | undefined
  /** When the news came; absent: now. */
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

export interface Group {
  readonly key: GroupKey
  readonly description: WaitGroup
  readonly waiters: WorkerTurns
  lock: GroupLock
  dirty: Cause | undefined
  backoff: Backoff
  /** When something last told whether there is work. */
  checkedAt: number
  hintedAt: number
  contendedInARow: number
  /** Messages that were told of and not found yet, Infinity where nobody counted. */
  announced: number
  /** The version of `interests()` that first had this group. */
  interestVersion: number
  /** It was popped before all peers knew that somebody waits here. */
  poppedUnadvertised: boolean
}

export function createGroup(
  description: WaitGroup,
  now: number,
  settings: SharedStateSettings,
): Group {
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
    announced: 0,
    interestVersion: 0,
    poppedUnadvertised: false,
  }
}

export function heldGrant(group: Group): Grant | undefined {
  const { lock } = group
  return lock.state === 'granted' || lock.state === 'popping' ? lock : undefined
}

/** What a pop says about the group. An empty one that was overtaken by a hint says nothing. */
export function noteOutcome(
  group: Group,
  { outcome, found }: PopReport,
  now: number,
  settings: SharedStateSettings,
): void {
  if (outcome === 'messages') group.announced = Math.max(0, group.announced - found)
  else if (outcome === 'empty' && group.dirty === undefined) group.announced = 0
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

/** What follows a pop that ended. */
export function afterPop(group: Group, outcome: GrantOutcome, cause: Cause): NextStep {
  if (group.waiters.total === 0) return { step: 'free' }
  switch (outcome) {
    case 'messages': {
      const isAllFound = group.announced === 0 && group.dirty === undefined
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
