import type { WaitGroup } from '@rouse/protocol'
import { DeadlineQueue } from './deadline-queue.ts'
import { GroupIndex } from './group-index.ts'
import { type GroupKey, groupKey } from './group-key.ts'
import { createGroup, type GroupState } from './group-state.ts'
import type { SidecarId } from './ports.ts'
import type { SharedStateSettings } from './settings.ts'

/** Every group that has waiters or had some a moment ago, in a bounded table. */
export class GroupTable {
  readonly index = new GroupIndex<GroupState>()
  readonly #groups = new Map<GroupKey, GroupState>()
  readonly #waiting = new Set<GroupState>()
  readonly #lingering: DeadlineQueue<GroupState>
  readonly #settings: SharedStateSettings

  constructor(settings: SharedStateSettings) {
    this.#settings = settings
    this.#lingering = new DeadlineQueue(settings.groupLingerMs)
  }

  get size(): number {
    return this.#groups.size
  }

  get(key: GroupKey): GroupState | undefined {
    return this.#groups.get(key)
  }

  all(): Iterable<GroupState> {
    return this.#groups.values()
  }

  waiting(): ReadonlySet<GroupState> {
    return this.#waiting
  }

  /** Finds or creates a group; undefined when the table is full of groups in use. */
  open(description: WaitGroup, now: number): GroupState | undefined {
    const known = this.#groups.get(groupKey(description))
    if (known !== undefined) return known
    if (this.#groups.size >= this.#settings.groupsMax && !this.#makeRoom()) return undefined
    const group = createGroup(description, now, this.#settings)
    this.#groups.set(group.key, group)
    this.index.add(group)
    return group
  }

  setWaiting(group: GroupState, sidecarId: SidecarId, count: number, now: number): void {
    const before = group.waiters.total
    group.waiters.set(sidecarId, count)
    const after = group.waiters.total
    if (after > 0) {
      if (before === 0) group.checkedAt = now
      this.#waiting.add(group)
      this.#lingering.delete(group)
    } else if (before > 0) {
      this.#waiting.delete(group)
      this.#lingering.add(group, now)
    }
  }

  nextForgetAt(): number {
    return this.#lingering.firstDueAt()
  }

  /** Whether any group was removed. */
  forgetIdle(now: number): boolean {
    let forgotten = false
    for (const group of this.#lingering.takeDue(now)) {
      if (group.lock.state === 'free') {
        this.#forget(group)
        forgotten = true
      } else this.#lingering.add(group, now)
    }
    return forgotten
  }

  #makeRoom(): boolean {
    const oldest = this.#lingering.find(({ lock }) => lock.state === 'free')
    if (oldest === undefined) return false
    this.#forget(oldest)
    return true
  }

  #forget(group: GroupState): void {
    this.#lingering.delete(group)
    this.#groups.delete(group.key)
    this.index.delete(group)
  }
}
