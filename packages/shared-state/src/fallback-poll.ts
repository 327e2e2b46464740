// The fallback poll. Because of it, a lost hint costs time but never a message. The primary polls for all due
// groups in ONE query, so idle load does not grow with the number of groups. A poll also includes every group
// that is past half of its interval, so that groups that were polled together stay together.
//
// A group is due one interval after its last poll. The manager decides whether a group is due
// (`shouldCheckGroup`) and how long its interval is (`getGroupInterval`). A group in flight is not polled.
// What polls find decides how long the node stays aggressive (poll-mode.ts).

import type { GrantOutcome } from '@rouse/protocol'
import {
  afterFault,
  afterFaultCleared,
  afterPoll,
  type Fault,
  type PollMode,
  type StandingFault,
  startHealthy,
  withoutWaiters,
} from './poll-mode.ts'
import type { GroupKey } from './ports.ts'
import type { SharedStateSettings } from './settings.ts'
import type { WakeCounters } from './stats.ts'
import { afterEmpty, foundEmpty, type GroupState, isWake } from './wait-group.ts'

/** The manager makes these decisions. */
export interface PollDecisions {
  shouldCheckGroup(key: GroupKey, now: number): boolean
  getGroupInterval(key: GroupKey): number
  pollDueAt(group: GroupState): number
}

export interface PollResult {
  readonly withWork: readonly GroupWithWork[]
  readonly empty: readonly GroupState[]
}

export interface GroupWithWork {
  readonly group: GroupState
  /**
   * Neither a hint nor a pop had reached the group before the poll found work. Only a pop shows whether there
   * really is work.
   */
  readonly isUnannounced: boolean
}

export class FallbackPoll {
  readonly #settings: SharedStateSettings
  readonly #counters: WakeCounters
  mode: PollMode
  /** No group is due before this time. The manager lowers it when a group may be due earlier. */
  dueAt = Number.POSITIVE_INFINITY
  /** The query in flight. Only one runs at a time. */
  asked: { readonly at: number; readonly groups: readonly GroupState[] } | undefined
  #coveredAt = Number.NEGATIVE_INFINITY
  /** The number of the last poll that counted as quiet. */
  #quietPoll = 0

  constructor(settings: SharedStateSettings, counters: WakeCounters, now: number) {
    this.#settings = settings
    this.#counters = counters
    this.mode = startHealthy(now)
  }

  reportFault(fault: Fault, now: number): void {
    // Every group may be due earlier now.
    if (this.mode.mode === 'healthy') this.dueAt = Number.NEGATIVE_INFINITY
    this.mode = afterFault(this.mode, fault, now)
  }

  clearFault(fault: StandingFault, now: number): void {
    this.mode = afterFaultCleared(this.mode, fault, now)
  }

  /** Puts the group into the next poll. If a poll is in flight and finds nothing for it, the group stays due. */
  include(group: GroupState, now: number): void {
    group.hintedAt = now
    group.hintedCount = Number.POSITIVE_INFINITY
    group.checkedAt = Number.NEGATIVE_INFINITY
    this.dueAt = Number.NEGATIVE_INFINITY
  }

  /** The groups to poll now; empty if none is due. Pass the result to `answered` or `failed`. */
  ask(
    waiting: ReadonlySet<GroupState>,
    decisions: PollDecisions,
    now: number,
  ): readonly GroupState[] {
    if (waiting.size === 0) this.mode = withoutWaiters(this.mode, now, this.#settings)
    if (this.asked !== undefined || this.dueAt > now) return []
    const due = this.#collect(waiting, decisions, now)
    if (due.length === 0) {
      this.#coveredByPops(now)
      return []
    }
    const { fallbackGroupsMax } = this.#settings
    if (due.length > fallbackGroupsMax) this.dueAt = now
    this.asked = { at: now, groups: due.slice(0, fallbackGroupsMax) }
    return this.asked.groups
  }

  /** Ignores keys that were not part of the query, and a result without a query. */
  answered(keysWithWork: Iterable<GroupKey>, now: number): PollResult {
    const { asked } = this
    if (asked === undefined) return { withWork: [], empty: [] }
    this.asked = undefined
    const empty = new Map(asked.groups.map((group) => [group.key, group]))
    const withWork: GroupWithWork[] = []
    for (const key of keysWithWork) {
      const group = empty.get(key)
      if (group === undefined) continue
      empty.delete(key)
      const wasHinted = group.hintedCount > 0 || group.hintedAt >= asked.at
      withWork.push({ group, isUnannounced: group.lock.state === 'free' && !wasHinted })
    }
    for (const group of empty.values()) this.#foundEmpty(group, asked.at, now)
    this.#counters.fallbackChecks += 1
    if (!withWork.some(({ isUnannounced }) => isUnannounced)) this.#checked('nothing', now)
    return { withWork, empty: [...empty.values()] }
  }

  /** Called when the query failed. The groups keep their backoff and are due again after an interval. */
  failed(now: number): readonly GroupState[] {
    const groups = this.asked?.groups ?? []
    this.asked = undefined
    for (const group of groups) group.checkedAt = now
    this.reportFault('fetch_error', now)
    return groups
  }

  /**
   * A pop has shown whether a poll really found work without a hint. If a hint arrived during the pop, it may
   * concern the messages that the pop found, so they do not count as unannounced.
   */
  popped(group: GroupState, outcome: GrantOutcome, now: number): void {
    if (outcome === 'messages' && !isWake(group.dirty)) this.#checked('unannounced', now)
    else if (outcome === 'empty') this.#checked('nothing', now)
  }

  /** Due groups first, then those to include early; empty when none is due. */
  #collect(
    waiting: Iterable<GroupState>,
    decisions: PollDecisions,
    now: number,
  ): readonly GroupState[] {
    const due: GroupState[] = []
    const alongside: GroupState[] = []
    let nextAt = Number.POSITIVE_INFINITY
    let alongsideDueAt = Number.POSITIVE_INFINITY
    for (const group of waiting) {
      if (group.lock.state !== 'free') continue
      if (decisions.shouldCheckGroup(group.key, now)) {
        due.push(group)
        continue
      }
      const intervalMs = decisions.getGroupInterval(group.key)
      const dueAt = decisions.pollDueAt(group)
      if (dueAt - intervalMs / 2 <= now) {
        alongside.push(group)
        alongsideDueAt = Math.min(alongsideDueAt, dueAt)
      } else nextAt = Math.min(nextAt, dueAt)
    }
    const isAnyDue = due.length > 0
    this.dueAt = isAnyDue ? nextAt : Math.min(nextAt, alongsideDueAt)
    return isAnyDue ? [...due, ...alongside] : []
  }

  #foundEmpty(group: GroupState, askedAt: number, now: number): void {
    if (group.hintedAt >= askedAt) {
      // The poll has verified what was counted before it. Otherwise it would be repeated at once, and again
      // and again while hints are frequent.
      group.unverifiedSince = Math.max(group.unverifiedSince, askedAt)
      return
    }
    // A waiter that arrived meanwhile has its own pop, whose result is more recent.
    if (group.lock.state === 'free') foundEmpty(group)
    group.backoff = afterEmpty(group.backoff, this.#settings)
    group.checkedAt = now
  }

  /**
   * Pops have covered every group that would have been due. That counts as a poll, at most once per
   * `maxIntervalMs`.
   */
  #coveredByPops(now: number): void {
    if (now - this.#coveredAt < this.#settings.maxIntervalMs) return
    this.#coveredAt = now
    this.mode = afterPoll(this.mode, 'nothing', now, this.#settings)
  }

  /**
   * Records what the last poll found, reported by the poll itself or by the pops for the groups with work. A
   * poll counts as quiet at most once.
   */
  #checked(found: 'nothing' | 'unannounced', now: number): void {
    const { fallbackChecks } = this.#counters
    if (found === 'unannounced') this.#counters.unannounced += 1
    else if (this.#quietPoll === fallbackChecks) return
    else this.#quietPoll = fallbackChecks
    this.mode = afterPoll(this.mode, found, now, this.#settings)
  }
}
