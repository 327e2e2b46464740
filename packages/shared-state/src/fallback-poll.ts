// The fallback poll: it makes a lost hint cost time instead of a message. The primary polls for all due
// groups in ONE query, so idle load does not grow with their number: a poll includes every group past half of
// its interval, and groups that were polled together stay together.
//
// A group is due one interval after its last poll. The interval is the group backoff in aggressive mode and
// for a group that some peer does not know yet; otherwise the idle interval. A group in flight is not polled.
import { afterEmpty, startBackoff } from './backoff.ts'
import type { GroupKey } from './group-key.ts'
import type { GroupState } from './group-state.ts'
import type { SharedStateSettings } from './settings.ts'

export interface FallbackContext {
  readonly settings: SharedStateSettings
  /** Whether the group uses its backoff interval instead of the idle interval. */
  readonly isUrgent: (group: GroupState) => boolean
}

export interface GroupWithWork {
  readonly group: GroupState
  /** No hint and no pop has reached the group. Only a pop shows whether there really is work. */
  readonly isUnannounced: boolean
}

export class FallbackPoll {
  readonly #context: FallbackContext
  /** A lower bound of all due times. */
  #nextDueAt = Number.POSITIVE_INFINITY
  #asked: { readonly at: number; readonly groups: ReadonlyMap<GroupKey, GroupState> } | undefined

  constructor(context: FallbackContext) {
    this.#context = context
  }

  /** Only one query runs at a time: while it does, nothing is due. */
  nextDueAt(): number {
    return this.#asked === undefined ? this.#nextDueAt : Number.POSITIVE_INFINITY
  }

  dueAt(group: GroupState): number {
    return group.checkedAt + this.#intervalMs(group)
  }

  /** Call when a group's due time may have moved forward. */
  touch(group: GroupState): void {
    this.#nextDueAt = Math.min(this.#nextDueAt, this.dueAt(group))
  }

  /** Puts the group into the next poll, even if a query that started earlier finds nothing. */
  makeDue(group: GroupState, now: number): void {
    group.backoff = startBackoff(this.#context.settings)
    group.hintedAt = now
    group.hintedCount = Number.POSITIVE_INFINITY
    group.checkedAt = Number.NEGATIVE_INFINITY
    this.touch(group)
  }

  /** Call when every due time may have moved forward. */
  touchAll(): void {
    this.#nextDueAt = Number.NEGATIVE_INFINITY
  }

  /**
   * The groups to poll now; pass the result to `answered` or `failed`. Undefined: not due yet. Empty: due,
   * but pops have covered every group meanwhile.
   */
  ask(waiting: Iterable<GroupState>, now: number): GroupKey[] | undefined {
    if (this.nextDueAt() > now) return undefined
    const due = this.#collect(waiting, now)
    if (due.length === 0) return []
    const { fallbackGroupsMax } = this.#context.settings
    if (due.length > fallbackGroupsMax) this.#nextDueAt = now
    const asked = due.slice(0, fallbackGroupsMax)
    this.#asked = { at: now, groups: new Map(asked.map((group) => [group.key, group])) }
    return asked.map((group) => group.key)
  }

  /** Undefined when no query was running. Ignores keys that were not part of it. */
  answered(keysWithWork: Iterable<GroupKey>, now: number): GroupWithWork[] | undefined {
    const asked = this.#asked
    if (asked === undefined) return undefined
    this.#asked = undefined
    const withWork: GroupWithWork[] = []
    const empty = new Map(asked.groups)
    for (const key of keysWithWork) {
      const group = empty.get(key)
      if (group === undefined) continue
      empty.delete(key)
      const wasHinted = group.hintedCount > 0 || group.hintedAt >= asked.at
      withWork.push({ group, isUnannounced: group.lock.state === 'free' && !wasHinted })
    }
    for (const group of empty.values()) this.#foundEmpty(group, asked.at, now)
    return withWork
  }

  /** The groups keep their backoff and are due again after an interval. */
  failed(now: number): void {
    const groups = this.#asked?.groups.values() ?? []
    this.#asked = undefined
    for (const group of groups) {
      group.checkedAt = now
      this.touch(group)
    }
  }

  /** Due groups first, then those to include early; empty when none is due. */
  #collect(waiting: Iterable<GroupState>, now: number): GroupState[] {
    const due: GroupState[] = []
    const alongside: GroupState[] = []
    let nextAt = Number.POSITIVE_INFINITY
    let alongsideDueAt = Number.POSITIVE_INFINITY
    for (const group of waiting) {
      if (group.lock.state !== 'free') continue
      const intervalMs = this.#intervalMs(group)
      const dueAt = group.checkedAt + intervalMs
      if (dueAt <= now) due.push(group)
      else if (dueAt - intervalMs / 2 <= now) {
        alongside.push(group)
        alongsideDueAt = Math.min(alongsideDueAt, dueAt)
      } else nextAt = Math.min(nextAt, dueAt)
    }
    const isAnyDue = due.length > 0
    this.#nextDueAt = isAnyDue ? nextAt : Math.min(nextAt, alongsideDueAt)
    return isAnyDue ? [...due, ...alongside] : []
  }

  #foundEmpty(group: GroupState, askedAt: number, now: number): void {
    if (group.hintedAt < askedAt) {
      // A waiter that arrived meanwhile has its own pop, whose result is more recent.
      if (group.lock.state === 'free') group.hintedCount = 0
      group.backoff = afterEmpty(group.backoff, this.#context.settings)
      group.checkedAt = now
    }
    this.touch(group)
  }

  #intervalMs(group: GroupState): number {
    const { isUrgent, settings } = this.#context
    return isUrgent(group) ? group.backoff.intervalMs : settings.idleIntervalMs
  }
}
