// Decides, in the node's primary, which worker pops for which wait group, and when. Every event arrives as a
// call; every action leaves through a port.
//
//   a waiter arrives    setWaiting, requestGrant          → a grant, or the pop in flight is repeated, or
//                                                           nothing if the group is known to be empty
//   a grant is answered grantTaken, releaseGroup          → perhaps the next grant: the wake chain
//   messages arrive     notifyMessageAvailable (own)      → a grant for each group that waits for them,
//                       handleMessageAvailable (a peer's)   and a hint to the peers if they are our own and
//                                                           no waiter of this node takes them
//   time passes         tick, dueForFallback              → grants taken back or retried, groups polled
//   something breaks    unregisterSidecar, reportFault    → locks freed, aggressive mode
//
// Its decisions: resetBackoffForQueue (which groups a hint concerns), tryAcquireGroup (whether a worker may
// pop), shouldCheckGroup and getGroupInterval (whether a group is polled, and how often).
//
// The parts: wait-group.ts (a group and its lock), group-table.ts (the known groups), grants.ts (which worker
// gets the lock), held-hints.ts (whether peers are needed), fallback-poll.ts (polls without hints),
// poll-mode.ts (whether hints are trusted), interest.ts (what peers know).
import {
  type GrantOutcome,
  isCompletionGroup,
  type WaitGroup,
  type WakeHint,
} from '@rouse/protocol'
import { FallbackPoll } from './fallback-poll.ts'
import { Grants } from './grants.ts'
import { GroupTable, groupKey } from './group-table.ts'
import { HeldHints } from './held-hints.ts'
import { AdvertisedInterest } from './interest.ts'
import { type Fault, leavesAt, type MomentaryFault, type StandingFault } from './poll-mode.ts'
import type { GroupKey, SharedStatePorts, SidecarId, WakeSource } from './ports.ts'
import { type SharedStateSettings, sharedStateDefaults } from './settings.ts'
import { buildStats, type SharedStateStats, WakeCounters } from './stats.ts'
import { type Cause, countOf, type GroupState, isKnownEmpty, startBackoff } from './wait-group.ts'

/** The origin of an own hint: a call of a worker, a timer of the primary, or its reaction to a NOTIFY. */
export type Origin = { readonly sidecarId: SidecarId } | 'timer' | 'notify'

export class SharedStateManager {
  readonly #ports: SharedStatePorts
  readonly #settings: SharedStateSettings
  readonly #sidecars = new Set<SidecarId>()
  readonly #counters = new WakeCounters()
  readonly #interest: AdvertisedInterest
  readonly #table: GroupTable
  readonly #grants: Grants
  readonly #held: HeldHints
  readonly #polls: FallbackPoll

  constructor(ports: SharedStatePorts, settings: Partial<SharedStateSettings> = {}) {
    this.#ports = ports
    this.#settings = { ...sharedStateDefaults, ...settings }
    this.#interest = new AdvertisedInterest(ports.interestChanged !== undefined)
    this.#table = new GroupTable(this.#settings)
    this.#held = new HeldHints(this.#settings, this.#counters, ports.broadcast)
    this.#polls = new FallbackPoll(this.#settings, this.#counters, ports.now())
    this.#grants = new Grants({
      settings: this.#settings,
      counters: this.#counters,
      tryAcquire: (sidecarId, group, cause) => this.tryAcquireGroup(sidecarId, group.key, cause),
      grant: ports.grant,
      onFree: (group) => this.#expectPoll(group),
      onPopped: (group, outcome) => this.#held.popped(group, outcome),
      onUnused: (group, sidecarId) => this.#setWaiting(group, sidecarId, 0),
      onChecked: (group, outcome) => this.#polls.popped(group, outcome, ports.now()),
      onFault: (fault) => this.reportFault(fault),
    })
  }

  registerSidecar(sidecarId: SidecarId): void {
    if (this.#sidecars.size >= this.#settings.sidecarsMax && !this.#sidecars.has(sidecarId)) {
      throw new RangeError(`too many sidecars (at most ${this.#settings.sidecarsMax})`)
    }
    this.#sidecars.add(sidecarId)
  }

  /** A worker sent a message other than these calls, which shows that it is running. */
  heardSidecar(sidecarId: SidecarId): void {
    if (this.#sidecars.has(sidecarId)) this.#grants.heard(sidecarId, this.#ports.now())
  }

  /**
   * Frees the worker's grants and wakes every group. A worker that died may have committed without a hint, so
   * then the groups of the peers are woken, too.
   */
  unregisterSidecar(sidecarId: SidecarId, how: 'died' | 'left' = 'died'): void {
    if (!this.#sidecars.delete(sidecarId)) return
    for (const group of this.#table.all()) {
      if (group.waiters.of(sidecarId) > 0) this.#setWaiting(group, sidecarId, 0)
    }
    this.#grants.sidecarGone(this.#table.all(), sidecarId)
    if (how === 'left') this.notifyEverything('ipc')
    else this.announceEverything('sidecar_lost')
  }

  /**
   * Sets the number of a worker's waiters for a group. False: the group table is full, or the worker is not
   * registered.
   */
  setWaiting(sidecarId: SidecarId, description: WaitGroup, count: number): boolean {
    if (!this.#sidecars.has(sidecarId)) return false
    if (count === 0 && this.#table.get(groupKey(description)) === undefined) return true
    const group = this.#table.open(description, this.#ports.now())
    if (group === undefined) {
      this.#counters.refusedGroups += 1
      return false
    }
    const isNew = group.interestVersion === 0
    if (isNew) this.#interest.begin(group)
    this.#setWaiting(group, sidecarId, count)
    this.heardSidecar(sidecarId)
    if (isNew) this.#ports.interestChanged?.(this.#interest.version)
    return true
  }

  /**
   * Requests a new waiter's first query. The grant follows at once, or after the pop in flight. With
   * `unlessEmpty` the waiter does without if its group is known to be empty.
   */
  requestGrant(sidecarId: SidecarId, key: GroupKey, { unlessEmpty = false } = {}): void {
    const group = this.#groupOf(sidecarId, key)
    if (group !== undefined) {
      if (unlessEmpty && this.#isKnownEmpty(group)) this.#counters.requestsSpared += 1
      else this.#grants.request(group, sidecarId, this.#ports.now())
    }
    this.heardSidecar(sidecarId)
  }

  /** Takes the group's lock for a worker. Returns the id of its grant; undefined while a pop is in flight. */
  tryAcquireGroup(
    sidecarId: SidecarId,
    key: GroupKey,
    cause: Cause = { source: 'request' },
  ): number | undefined {
    const group = this.#groupOf(sidecarId, key)
    return group && this.#grants.acquire(group, sidecarId, cause, this.#ports.now())
  }

  /** The worker began its pop. False: the grant had been taken back. */
  grantTaken(sidecarId: SidecarId, key: GroupKey, grantId: number): boolean {
    const group = this.#groupOf(sidecarId, key)
    const isTaken = group !== undefined && this.#grants.taken(group, grantId, this.#ports.now())
    // This call comes last, because it may grant the group to another worker.
    this.heardSidecar(sidecarId)
    return isTaken
  }

  /** The pop ended with `found` messages. Call `setWaiting` first. False: the grant had been taken back. */
  releaseGroup(key: GroupKey, grantId: number, outcome: GrantOutcome, found = 0): boolean {
    const group = this.#table.get(key)
    if (group === undefined) return false
    return this.#grants.release(group, grantId, { outcome, found }, this.#ports.now())
  }

  /** Messages became deliverable through this node. */
  notifyMessageAvailable(hint: WakeHint, origin: Origin): void {
    const groups = this.#wakeMatching(hint, origin, countOf(hint))
    this.#announce(hint, 'available', groups)
  }

  /** A lane was freed through this node: a waiter of its consumer group may pop from it. */
  notifyPartitionFree(hint: WakeHint, origin: Origin): void {
    const groups = this.#wakeMatching(hint, origin, undefined)
    this.#announce(hint, 'free', groups)
  }

  /**
   * A hint from a peer, a NOTIFY or a worker. The peers already have it, or get it unless `onServed` is
   * called soon: then waiters of this node took everything.
   */
  handleMessageAvailable(
    hint: WakeHint,
    source: 'udp' | 'notify' | 'ipc' = 'udp',
    onServed?: () => void,
  ): void {
    const groups = this.#wakeMatching(hint, source, countOf(hint))
    if (onServed !== undefined) this.#held.heard(hint, groups, onServed, this.#ports.now())
  }

  /** Finds the groups that a hint may concern, and restarts their backoff. */
  resetBackoffForQueue(hint: WakeHint): readonly GroupState[] {
    const groups = this.#table.matching(hint)
    for (const group of groups) group.backoff = startBackoff(this.#settings)
    return groups
  }

  /**
   * Wakes all groups of this node and of its peers. Called when a worker died or an outcome is unknown: any
   * write through this node may have committed, or may still commit.
   */
  announceEverything(fault?: MomentaryFault): void {
    if (fault !== undefined) this.reportFault(fault)
    this.notifyEverything('ipc')
    this.#ports.broadcastEverything()
  }

  /**
   * Wakes all groups of this node. Called when a peer died or hints were lost: any write may have committed.
   */
  notifyEverything(source: WakeSource): void {
    this.#wakeAll([...this.#table.all()], { source })
  }

  /** Records a fault that may lose hints. `listener_lost` and `peer_silent` last until they are cleared. */
  reportFault(fault: Fault): void {
    this.#polls.reportFault(fault, this.#ports.now())
  }

  clearFault(fault: StandingFault): void {
    this.#polls.clearFault(fault, this.#ports.now())
  }

  /** Whether this node waits for anything, or did a moment ago. */
  hasGroups(): boolean {
    return this.#table.size > 0
  }

  /** The groups this node waits for, or did a moment ago, to advertise to peers. */
  interests(): { readonly version: number; readonly groups: readonly WaitGroup[] } {
    const groups = Array.from(this.#table.all(), ({ description }) => description)
    return { version: this.#interest.version, groups }
  }

  /** Records the newest version that every peer holds. */
  interestEchoed(version: number): void {
    const { missed, isLess } = this.#interest.echoed(version, this.#table.all())
    // No hint arrived, so each pop counts as another first query.
    this.#wakeAll(missed, { source: 'request' })
    if (isLess) this.#polls.dueAt = Number.NEGATIVE_INFINITY
  }

  /** Whether the group is due for a fallback poll. */
  shouldCheckGroup(key: GroupKey, now = this.#ports.now()): boolean {
    const group = this.#table.get(key)
    return group === undefined || this.pollDueAt(group) <= now
  }

  /**
   * The interval between fallback polls: the group backoff while hints may not reach the group, otherwise the
   * idle interval. The ends of messages are polled more often, because most have no hint.
   */
  getGroupInterval(key: GroupKey): number {
    const group = this.#table.get(key)
    if (group === undefined) return this.#settings.baseIntervalMs
    const isUrgent = this.#polls.mode.mode === 'aggressive' || !group.isAdvertised
    const { completionIntervalMs, idleIntervalMs } = this.#settings
    const isForEnds = isCompletionGroup(group.description.group)
    const calmMs = isForEnds ? completionIntervalMs : idleIntervalMs
    return isUrgent ? group.backoff.intervalMs : calmMs
  }

  /** When the group is due for a fallback poll. */
  pollDueAt(group: GroupState): number {
    const dueAt = group.checkedAt + this.getGroupInterval(group.key)
    if (this.#polls.mode.mode === 'aggressive') return dueAt
    return Math.min(dueAt, group.unverifiedSince + this.#settings.verifyAfterMs)
  }

  /** The groups to poll now, in one query. Pass the result to `fallbackResult` or `fallbackFailed`. */
  dueForFallback(): ReadonlyMap<GroupKey, WaitGroup> {
    const due = this.#polls.ask(this.#table.waiting(), this, this.#ports.now())
    return new Map(due.map(({ key, description }) => [key, description]))
  }

  fallbackResult(keysWithWork: Iterable<GroupKey>): void {
    const now = this.#ports.now()
    const { withWork, empty } = this.#polls.answered(keysWithWork, now)
    for (const group of empty) this.#expectPoll(group)
    // The backoff stays until a pop confirms the work.
    for (const { group, isUnannounced } of withWork) {
      this.#grants.wake(group, { source: 'fallback', isUnannounced }, now)
    }
  }

  fallbackFailed(): void {
    for (const group of this.#polls.failed(this.#ports.now())) this.#expectPoll(group)
  }

  /** Runs everything that is due: takes back grants, retries, removes idle groups. */
  tick(): void {
    const now = this.#ports.now()
    this.#grants.tick(now)
    this.#held.tick(now)
    if (!this.#table.forgetIdle(now)) return
    this.#interest.end()
    this.#ports.interestChanged?.(this.#interest.version)
  }

  /** When `tick` is due next; Infinity for never. */
  nextTickAt(): number {
    return Math.min(this.#grants.nextTickAt(), this.#held.nextTickAt(), this.#table.nextForgetAt())
  }

  /** When `tick` or `dueForFallback` is due next. */
  nextWakeAt(): number {
    const { mode, dueAt, asked } = this.#polls
    if (this.#table.waiting().size > 0) {
      return Math.min(this.nextTickAt(), asked === undefined ? dueAt : Number.POSITIVE_INFINITY)
    }
    // Without waiters there is nothing to poll, but aggressive mode may have to end.
    if (mode.mode === 'healthy') return this.nextTickAt()
    return Math.min(this.nextTickAt(), leavesAt(mode, this.#settings))
  }

  /** Whether hints are trusted, and why not. */
  get mode(): SharedStateStats['mode'] {
    return this.#polls.mode
  }

  getStats(): SharedStateStats {
    return buildStats({
      sidecars: this.#sidecars.size,
      groups: this.#table.all(),
      counters: this.#counters,
      mode: this.#polls.mode,
      settings: this.#settings,
      dueAt: (group) => this.pollDueAt(group),
      now: this.#ports.now(),
    })
  }

  /** Requests that wait for a message to end wait for different messages, so every node gets their hints. */
  #announce(hint: WakeHint, kind: 'available' | 'free', groups: readonly GroupState[]): void {
    const { broadcast, now } = this.#ports
    const isForEnds = typeof hint.group === 'string' && isCompletionGroup(hint.group)
    if (isForEnds) broadcast(hint, kind, new Set())
    else this.#held.announce(hint, kind, groups, now())
  }

  #wakeMatching(
    hint: WakeHint,
    origin: Origin | WakeSource,
    count: number | undefined,
  ): readonly GroupState[] {
    const now = this.#ports.now()
    const cause: Cause =
      typeof origin === 'string'
        ? { source: origin, count }
        : { source: 'local', from: origin.sidecarId, count }
    const groups = this.resetBackoffForQueue(hint)
    for (const group of groups) this.#grants.wake(group, cause, now)
    return groups
  }

  /**
   * Grants a pop for each group. If there are very many groups, it instead polls those without a pop in
   * flight in one query.
   */
  #wakeAll(groups: readonly GroupState[], cause: Cause): void {
    const now = this.#ports.now()
    const areMany = this.#table.waiting().size > this.#settings.wakeAllGroupsMax
    for (const group of groups) {
      group.backoff = startBackoff(this.#settings)
      if (areMany && group.lock.state === 'free') this.#polls.include(group, now)
      else this.#grants.wake(group, cause, now)
    }
  }

  #isKnownEmpty(group: GroupState): boolean {
    const { mode } = this.#polls
    if (mode.mode === 'aggressive') return false
    const trustedSince = this.#ports.now() - this.#settings.emptyTrustedMs
    return isKnownEmpty(group, Math.max(mode.since, trustedSince))
  }

  #setWaiting(group: GroupState, sidecarId: SidecarId, count: number): void {
    this.#table.setWaiting(group, sidecarId, count, this.#ports.now())
    if (group.waiters.total > 0) this.#expectPoll(group)
  }

  /** To be called when a group may be due earlier than before. */
  #expectPoll(group: GroupState): void {
    this.#polls.dueAt = Math.min(this.#polls.dueAt, this.pollDueAt(group))
  }

  /** Undefined for an unknown group, and for a worker that is gone. */
  #groupOf(sidecarId: SidecarId, key: GroupKey): GroupState | undefined {
    return this.#sidecars.has(sidecarId) ? this.#table.get(key) : undefined
  }
}
