// The checks that make a lost hint cost time instead of a message. The primary asks about all groups
// that are due in ONE query, so idle load does not grow with their number: a check takes along every
// group that is past half of its interval, and groups that were checked together stay together.
//
// A group is due one interval after its last check: the ladder's in aggressive mode, and for a group
// that not all peers know of yet; else the idle interval. A group in flight is being checked already.
import { afterEmpty, startBackoff } from './backoff.ts'
import type { GroupKey } from './group-key.ts'
import type { Group } from './group-state.ts'
import type { SharedStateSettings } from './settings.ts'

export interface FallbackContext {
  readonly settings: SharedStateSettings
  /** Whether the group is on its ladder. */
  readonly isUrgent: (group: Group) => boolean
}

export interface GroupWithWork {
  readonly group: Group
  /** No hint and no pop had got to it. Whether there is work for it in truth, a pop must tell. */
  readonly isNews: boolean
}

export class FallbackChecks {
  readonly #context: FallbackContext
  /** No group is due before; it may be too early, never too late. */
  #nextDueAt = Number.POSITIVE_INFINITY
  #asked: { readonly at: number; readonly groups: ReadonlyMap<GroupKey, Group> } | undefined

  constructor(context: FallbackContext) {
    this.#context = context
  }

  /** One query at a time: while one runs, nothing is due. */
  nextDueAt(): number {
    return this.#asked === undefined ? this.#nextDueAt : Number.POSITIVE_INFINITY
  }

  dueAt(group: Group): number {
    return group.checkedAt + this.#intervalMs(group)
  }

  /** A group's due time may have come nearer. */
  touch(group: Group): void {
    this.#nextDueAt = Math.min(this.#nextDueAt, this.dueAt(group))
  }

  /** To be asked about next, even if a query that began earlier finds nothing. */
  makeDue(group: Group, now: number): void {
    group.backoff = startBackoff(this.#context.settings)
    group.hintedAt = now
    group.announced = Number.POSITIVE_INFINITY
    group.checkedAt = Number.NEGATIVE_INFINITY
    this.touch(group)
  }

  /** All due times may have. */
  touchAll(): void {
    this.#nextDueAt = Number.NEGATIVE_INFINITY
  }

  /** The groups to ask about now; the answer goes to `answered` or `failed`. Undefined: it is not time. None: it
   * was, but pops have looked after all of them meanwhile. */
  ask(waiting: Iterable<Group>, now: number): GroupKey[] | undefined {
    if (this.nextDueAt() > now) return undefined
    const due = this.#collect(waiting, now)
    if (due.length === 0) return []
    const { fallbackGroupsMax } = this.#context.settings
    if (due.length > fallbackGroupsMax) this.#nextDueAt = now
    const asked = due.slice(0, fallbackGroupsMax)
    this.#asked = { at: now, groups: new Map(asked.map((group) => [group.key, group])) }
    return asked.map((group) => group.key)
  }

  /** Undefined when nothing was asked. Keys that were not asked about are passed over. */
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
      const wasTold = group.announced > 0 || group.hintedAt >= asked.at
      withWork.push({ group, isNews: group.lock.state === 'free' && !wasTold })
    }
    for (const group of empty.values()) this.#foundEmpty(group, asked.at, now)
    return withWork
  }

  /** The groups stay where they are on their ladders and come again after an interval. */
  failed(now: number): void {
    const groups = this.#asked?.groups.values() ?? []
    this.#asked = undefined
    for (const group of groups) {
      group.checkedAt = now
      this.touch(group)
    }
  }

  /** Due groups first, then those to take along; empty when none is due. */
  #collect(waiting: Iterable<Group>, now: number): Group[] {
    const due: Group[] = []
    const alongside: Group[] = []
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

  #foundEmpty(group: Group, askedAt: number, now: number): void {
    if (group.hintedAt < askedAt) {
      // A waiter that came meanwhile has a pop of its own, which knows better.
      if (group.lock.state === 'free') group.announced = 0
      group.backoff = afterEmpty(group.backoff, this.#context.settings)
      group.checkedAt = now
    }
    this.touch(group)
  }

  #intervalMs(group: Group): number {
    const { isUrgent, settings } = this.#context
    return isUrgent(group) ? group.backoff.intervalMs : settings.idleIntervalMs
  }
}
