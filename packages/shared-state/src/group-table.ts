// The wait groups of a node: how they are named, found and removed.
//
// The key of a wait group:
//
//   queue/partition/group      one partition          orders/eu-1/billing
//   queue/*/group              any partition          orders/*/billing
//   namespace/n/task/t/group   any queue of those     namespace/shop/task/*/billing
//
// `/`, `*` and `%` inside a name are percent-encoded, so no two wait groups share a key, and keys stay
// readable. The part before the consumer group is the selector: all groups of a selector wake together.
import { isCompletionGroup, type WaitGroup, type WakeHint } from '@rouse/protocol'
import type { GroupKey, SidecarId } from './ports.ts'
import type { SharedStateSettings } from './settings.ts'
import { createGroup, type GroupState } from './wait-group.ts'

/** Every group that has waiters or had some a moment ago, in a bounded table. */
export class GroupTable {
  readonly #index = new GroupIndex<GroupState>()
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

  matching(hint: WakeHint): GroupState[] {
    const groups = this.#index.matching(hint)
    if (hint.except === undefined) return groups
    return groups.filter(({ description }) => description.group !== hint.except)
  }

  /** Finds or creates a group; undefined when the table is full of groups in use. */
  open(description: WaitGroup, now: number): GroupState | undefined {
    const key = groupKey(description)
    const known = this.#groups.get(key)
    if (known !== undefined) return known
    if (this.#groups.size >= this.#settings.groupsMax && !this.#makeRoom()) return undefined
    const group = createGroup(key, description, now, this.#settings)
    this.#groups.set(key, group)
    this.#index.add(group)
    return group
  }

  setWaiting(group: GroupState, sidecarId: SidecarId, count: number, now: number): void {
    const before = group.waiters.total
    group.waiters.set(sidecarId, count)
    const after = group.waiters.total
    if (after > 0) {
      // A group that is known to be empty is polled when it would have been with a waiter all the time.
      if (before === 0 && group.hintedCount > 0) group.checkedAt = now
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

  /** Removes idle groups. Returns whether it removed any. */
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
    this.#index.delete(group)
  }
}

export function groupKey(description: WaitGroup): GroupKey {
  return `${selectorOf(description)}/${encode(description.group)}`
}

function selectorOf({ source }: WaitGroup): string {
  if ('queue' in source) return queueSelector(source.queue, source.partition)
  return sharedSelector(source.namespace, source.task)
}

function queueSelector(queue: string, partition: string | undefined): string {
  return `${encode(queue)}/${partition === undefined ? '*' : encode(partition)}`
}

export function sharedSelector(namespace: string | undefined, task: string | undefined): string {
  const names = [namespace, task].map((name) => (name === undefined ? '*' : encode(name)))
  return `namespace/${names[0]}/task/${names[1]}`
}

const special = /[%/*]/g

function encode(name: string): string {
  return name.replace(special, (character) => {
    return `%${character.charCodeAt(0).toString(16).toUpperCase()}`
  })
}

/** Finds the groups that match a hint without scanning the others. */
export class GroupIndex<G extends { readonly description: WaitGroup }> {
  readonly #bySelector = new Map<string, Set<G>>()
  readonly #byQueue = new Map<string, Set<G>>()
  readonly #shared = new Set<G>()

  add(group: G): void {
    const { description } = group
    const { source } = description
    addTo(this.#bySelector, selectorOf(description), group)
    if ('queue' in source) addTo(this.#byQueue, source.queue, group)
    else this.#shared.add(group)
  }

  delete(group: G): void {
    const { description } = group
    const { source } = description
    deleteFrom(this.#bySelector, selectorOf(description), group)
    if ('queue' in source) deleteFrom(this.#byQueue, source.queue, group)
    else this.#shared.delete(group)
  }

  /** All groups that name this queue; groups by namespace and task are not included. */
  ofQueue(queue: string): readonly G[] {
    return [...(this.#byQueue.get(queue) ?? [])]
  }

  matching(hint: WakeHint): G[] {
    const candidates = [...this.#ofQueueMatching(hint), ...this.#sharedMatching(hint)]
    const { group } = hint
    return candidates.filter(({ description }) => concerns(group, description.group))
  }

  #ofQueueMatching({ queue, partition }: WakeHint): readonly G[] {
    if (partition === undefined || partition === null) return this.ofQueue(queue)
    return this.#ofSelectors([queueSelector(queue, partition), queueSelector(queue, undefined)])
  }

  #sharedMatching({ namespace, task }: WakeHint): readonly G[] {
    if (this.#shared.size === 0) return []
    if (namespace === undefined || task === undefined) return [...this.#shared]
    const namespaces = namespace === null ? [undefined] : [namespace, undefined]
    const tasks = task === null ? [undefined] : [task, undefined]
    return this.#ofSelectors(namespaces.flatMap((n) => tasks.map((t) => sharedSelector(n, t))))
  }

  #ofSelectors(selectors: readonly string[]): readonly G[] {
    return selectors.flatMap((selector) => [...(this.#bySelector.get(selector) ?? [])])
  }
}

/** A hint for all groups is about messages, and no waiter of a completion group gets any. */
function concerns(hinted: string | null | undefined, group: string): boolean {
  if (hinted === undefined || hinted === null) return !isCompletionGroup(group)
  return isCompletionGroup(hinted) ? group.startsWith(hinted) : group === hinted
}

function addTo<G>(sets: Map<string, Set<G>>, key: string, group: G): void {
  const set = sets.get(key)
  if (set === undefined) sets.set(key, new Set([group]))
  else set.add(group)
}

function deleteFrom<G>(sets: Map<string, Set<G>>, key: string, group: G): void {
  const set = sets.get(key)
  set?.delete(group)
  if (set?.size === 0) sets.delete(key)
}

/** Members that are due a fixed delay after they were added, so the first added is the first due. */
export class DeadlineQueue<M> {
  readonly #dueAt = new Map<M, number>()
  readonly #delayMs: number

  constructor(delayMs: number) {
    this.#delayMs = delayMs
  }

  /** Adding a member again restarts its delay. */
  add(member: M, now: number): void {
    this.#dueAt.delete(member)
    this.#dueAt.set(member, now + this.#delayMs)
  }

  delete(member: M): void {
    this.#dueAt.delete(member)
  }

  /** The first due member that fits. */
  find(fits: (member: M) => boolean): M | undefined {
    for (const member of this.#dueAt.keys()) if (fits(member)) return member
    return undefined
  }

  /** Infinity when there is no member. */
  firstDueAt(): number {
    return this.#dueAt.values().next().value ?? Number.POSITIVE_INFINITY
  }

  /** Removes and returns the members that are due. */
  takeDue(now: number): M[] {
    const due: M[] = []
    for (const [member, dueAt] of this.#dueAt) {
      if (dueAt > now) break
      due.push(member)
      this.#dueAt.delete(member)
    }
    return due
  }
}
