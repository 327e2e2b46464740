// Local first: if waiters of this node can take what a hint reports, peers do not get the hint at once. They
// get it if the pops of this node leave something, or take too long. A peer that was asked in this way
// reports in the same cases whether its waiters took everything.
import type { GrantOutcome, WakeHint } from '@rouse/protocol'
import { DeadlineQueue } from './group-table.ts'
import type { SharedStatePorts } from './ports.ts'
import type { SharedStateSettings } from './settings.ts'
import type { WakeCounters } from './stats.ts'
import { countOf, type GroupState } from './wait-group.ts'

/** A hint whose pops have not ended yet, and what to do when they end. */
interface HintResult {
  readonly group: GroupState
  /** They found everything that was hinted, or nothing is left to find. */
  readonly onServed: () => void
  /** The waiters left before that, or the time is over. */
  readonly onUnserved: () => void
}

const noGroups: ReadonlySet<string> = new Set()

export class HeldHints {
  readonly #settings: SharedStateSettings
  readonly #counters: WakeCounters
  readonly #broadcast: SharedStatePorts['broadcast']
  readonly #byGroup = new Map<GroupState, Set<HintResult>>()
  readonly #due: DeadlineQueue<HintResult>

  constructor(
    settings: SharedStateSettings,
    counters: WakeCounters,
    broadcast: SharedStatePorts['broadcast'],
  ) {
    this.#settings = settings
    this.#counters = counters
    this.#broadcast = broadcast
    this.#due = new DeadlineQueue(settings.holdHintMs)
  }

  /**
   * Announces an own hint to the peers: at once, except for the consumer groups that this node can serve. The
   * groups are those of this node that the hint concerns, and were just woken.
   */
  announce(
    hint: WakeHint,
    kind: 'available' | 'free',
    groups: readonly GroupState[],
    now: number,
  ): void {
    const serving = servingGroups(this.#settings.holdHintMs > 0 ? groups : [], hint, kind)
    for (const [name, group] of serving) {
      this.#add(
        {
          group,
          onServed: () => {
            this.#counters.hintsServed += 1
          },
          onUnserved: () => this.#broadcast({ ...hint, group: name }, kind, noGroups),
        },
        now,
      )
    }
    const served = new Set(serving.keys())
    if (hint.except !== undefined) served.add(hint.except)
    this.#broadcast(hint, kind, served)
  }

  /** A peer sent a hint. Calls `onServed` when waiters of this node took everything, for all groups. */
  heard(hint: WakeHint, groups: readonly GroupState[], onServed: () => void, now: number): void {
    const names = new Set(groups.map(({ description }) => description.group))
    for (const [name, group] of servingGroups(groups, hint, 'available')) {
      const onGroupServed = (): void => {
        names.delete(name)
        if (names.size === 0) onServed()
      }
      this.#add({ group, onServed: onGroupServed, onUnserved: () => {} }, now)
    }
  }

  /**
   * A pop of the group has ended, and its outcome is recorded. If waiters of one partition find nothing,
   * another node took the message. That node may have had a hint about a message of another partition, and
   * now counts that one as found. So the peers get the hint.
   */
  popped(group: GroupState, outcome: GrantOutcome): void {
    const isAllFound = group.hintedCount === 0
    if (!isAllFound && group.waiters.total > 0) return
    const isServed = isAllFound && (outcome !== 'empty' || !isForOnePartition(group))
    for (const result of this.#byGroup.get(group) ?? []) {
      this.#remove(result)
      if (isServed) result.onServed()
      else result.onUnserved()
    }
  }

  nextTickAt(): number {
    return this.#due.firstDueAt()
  }

  tick(now: number): void {
    for (const result of this.#due.takeDue(now)) {
      this.#remove(result)
      result.onUnserved()
    }
  }

  #add(result: HintResult, now: number): void {
    const held = this.#byGroup.get(result.group)
    if (held === undefined) this.#byGroup.set(result.group, new Set([result]))
    else held.add(result)
    this.#due.add(result, now)
  }

  #remove(result: HintResult): void {
    const held = this.#byGroup.get(result.group)
    held?.delete(result)
    if (held?.size === 0) this.#byGroup.delete(result.group)
    this.#due.delete(result)
  }
}

/**
 * For each consumer group the wait group whose waiters can take everything that was hinted. Waiters of one
 * partition cannot, if the hint is about any partition: others are left for peers even if they find nothing.
 */
function servingGroups(
  groups: readonly GroupState[],
  hint: WakeHint,
  kind: 'available' | 'free',
): ReadonlyMap<string, GroupState> {
  const isHintForOne = hint.partition !== undefined && hint.partition !== null
  const serving = new Map<string, GroupState>()
  for (const group of groups) {
    const name = group.description.group
    const needed = kind === 'free' ? 1 : neededWaiters(group, hint)
    const canServe = group.waiters.total >= needed && (isHintForOne || !isForOnePartition(group))
    if (canServe && !serving.has(name)) serving.set(name, group)
  }
  return serving
}

/** A waiter takes at least one message. From a freed lane only one waiter can take any. */
function neededWaiters({ hintedCount }: GroupState, hint: WakeHint): number {
  return hintedCount < Number.POSITIVE_INFINITY ? hintedCount : (countOf(hint) ?? 1)
}

function isForOnePartition({ description: { source } }: GroupState): boolean {
  return 'queue' in source && source.partition !== undefined
}
