// Decides, in the node's primary, which worker pops for which wait group, and when. Every event arrives as a
// call; every action leaves through a port.
//
//   a waiter arrives    setWaiting, requestGrant          → a grant, or the pop in flight is repeated
//   a grant is answered grantTaken, releaseGroup          → perhaps the next grant: the wake chain
//   messages arrive     notifyMessageAvailable (own)      → a grant for each group that waits for them,
//                       handleMessageAvailable (a peer's)   and a hint to the peers if they are our own
//   time passes         tick, dueForFallback              → grants taken back, retried, polled
//   something breaks    unregisterSidecar, reportFault    → locks freed, aggressive mode
//
// The parts: group-state.ts (the lock), wake-path.ts (which worker gets it), fallback-poll.ts (polls without
// hints), poll-mode.ts and paced-polls.ts (how often), group-table.ts (the known groups), interest.ts (what
// peers know).
import type { WaitGroup, WakeHint } from '@rouse/protocol'
import { startBackoff } from './backoff.ts'
import { countOf, type GroupKey, groupKey } from './group-key.ts'
import type { Cause, GroupState } from './group-state.ts'
import { GroupTable } from './group-table.ts'
import { describeAll, Interest } from './interest.ts'
import { PacedPolls } from './paced-polls.ts'
import type { Fault, MomentaryFault, StandingFault } from './poll-mode.ts'
import type { GrantOutcome, GrantSource, SharedStatePorts, SidecarId, WakeSource } from './ports.ts'
import { type SharedStateSettings, sharedStateDefaults } from './settings.ts'
import { buildStats, type SharedStateStats } from './stats.ts'
import { WakeCounters } from './wake-counters.ts'
import { WakePath } from './wake-path.ts'

/** The origin of an own hint: a call of a worker, a timer of the primary, or its reaction to a NOTIFY. */
export type Origin = { readonly sidecarId: SidecarId } | 'timer' | 'notify'

export class SharedStateManager {
  readonly #ports: SharedStatePorts
  readonly #settings: SharedStateSettings
  readonly #sidecars = new Set<SidecarId>()
  readonly #counters = new WakeCounters()
  readonly #interest: Interest
  readonly #table: GroupTable
  readonly #wakePath: WakePath
  readonly #paced: PacedPolls

  constructor(ports: SharedStatePorts, settings: Partial<SharedStateSettings> = {}) {
    this.#ports = ports
    this.#settings = { ...sharedStateDefaults, ...settings }
    this.#interest = new Interest(ports.interestChanged !== undefined)
    this.#table = new GroupTable(this.#settings)
    this.#paced = new PacedPolls(
      {
        settings: this.#settings,
        counters: this.#counters,
        isAdvertised: (group) => this.#interest.isAdvertised(group),
      },
      ports.now(),
    )
    this.#wakePath = new WakePath({
      settings: this.#settings,
      counters: this.#counters,
      grant: ports.grant,
      onGranted: (group) => {
        group.poppedUnadvertised ||= !this.#interest.isAdvertised(group)
      },
      onFree: (group) => this.#paced.fallback.touch(group),
      onUnused: (group, sidecarId) => this.#setWaiting(group, sidecarId, 0),
      onChecked: (found) => this.#paced.checked(found, ports.now()),
      onFault: (fault) => this.reportFault(fault),
    })
  }

  registerSidecar(sidecarId: SidecarId): void {
    if (this.#sidecars.size >= this.#settings.sidecarsMax && !this.#sidecars.has(sidecarId)) {
      throw new RangeError(`too many sidecars (at most ${this.#settings.sidecarsMax})`)
    }
    this.#sidecars.add(sidecarId)
  }

  /** A worker sent a message that is not one of these calls: it has not stopped. */
  heardSidecar(sidecarId: SidecarId): void {
    if (this.#sidecars.has(sidecarId)) this.#wakePath.heard(sidecarId, this.#ports.now())
  }

  /** Frees its grants. If it died, it may have committed without a hint, so every group is woken. */
  unregisterSidecar(sidecarId: SidecarId, how: 'died' | 'left' = 'died'): void {
    if (!this.#sidecars.delete(sidecarId)) return
    for (const group of this.#table.all()) {
      if (group.waiters.of(sidecarId) > 0) this.#setWaiting(group, sidecarId, 0)
    }
    this.#wakePath.sidecarGone(this.#table.all(), sidecarId)
    if (how === 'left') this.notifyEverything('ipc')
    else this.announceEverything('sidecar_lost')
  }

  /** The worker's waiters for a group. False: the group table is full, or the worker is not registered. */
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
    this.#wakePath.heard(sidecarId, this.#ports.now())
    if (isNew) this.#ports.interestChanged?.(this.#interest.version)
    return true
  }

  /** Requests a new waiter's first query. The grant follows at once, or after the pop in flight. */
  requestGrant(sidecarId: SidecarId, key: GroupKey): void {
    this.#handle(sidecarId, key, (group, now) => this.#wakePath.request(group, sidecarId, now))
  }

  /** Whether the group's backoff allows another poll. */
  shouldCheckGroup(key: GroupKey): boolean {
    const group = this.#table.get(key)
    if (group === undefined) return true
    return this.#ports.now() - group.checkedAt >= group.backoff.intervalMs
  }

  /** Returns the id of a grant that counts as taken; undefined while another pop is in flight. */
  tryAcquireGroup(sidecarId: SidecarId, key: GroupKey): number | undefined {
    return this.#handle(sidecarId, key, (group, now) =>
      this.#wakePath.acquire(group, sidecarId, now),
    )
  }

  /** The worker began its pop. False: the grant had been taken back. */
  grantTaken(sidecarId: SidecarId, key: GroupKey, grantId: number): boolean {
    const taken = this.#handle(sidecarId, key, (group, now) =>
      this.#wakePath.taken(group, grantId, now),
    )
    return taken ?? false
  }

  /** The pop ended with `found` messages. Call `setWaiting` first. False: the grant had been taken back. */
  releaseGroup(key: GroupKey, grantId: number, outcome: GrantOutcome, found = 0): boolean {
    const group = this.#table.get(key)
    if (group === undefined) return false
    return this.#wakePath.release(group, grantId, { outcome, found }, this.#ports.now())
  }

  getGroupInterval(key: GroupKey): number {
    return this.#table.get(key)?.backoff.intervalMs ?? this.#settings.baseIntervalMs
  }

  resetBackoffForQueue(queue: string): void {
    for (const group of this.#table.index.ofQueue(queue)) {
      group.backoff = startBackoff(this.#settings)
      this.#paced.fallback.touch(group)
    }
  }

  /** Messages became deliverable through this node. */
  notifyMessageAvailable(hint: WakeHint, origin: Origin): void {
    this.#announce('available', hint, origin, countOf(hint))
  }

  /** A lane was freed through this node: a waiter of its consumer group may pop from it. */
  notifyPartitionFree(hint: WakeHint, origin: Origin): void {
    this.#announce('free', hint, origin, undefined)
  }

  /** A hint from a peer, a NOTIFY or a worker. The peers already have it. */
  handleMessageAvailable(hint: WakeHint, source: 'udp' | 'notify' | 'ipc' = 'udp'): void {
    this.#wakeMatching(hint, { source, count: countOf(hint) })
  }

  /** Any write through this node may have committed or may yet: a worker died, or an outcome is unknown. */
  announceEverything(fault?: MomentaryFault): void {
    if (fault !== undefined) this.reportFault(fault)
    this.notifyEverything('ipc')
    this.#ports.broadcastEverything()
  }

  /** Any write may have committed: a peer died, or hints were lost. */
  notifyEverything(source: WakeSource): void {
    this.#wakeAll([...this.#table.waiting()], source)
  }

  /** A carrier of hints broke. `listener_lost` and `peer_silent` last until cleared. */
  reportFault(fault: Fault): void {
    this.#paced.reportFault(fault, this.#ports.now())
  }

  clearFault(fault: StandingFault): void {
    this.#paced.clearFault(fault, this.#ports.now())
  }

  /** The groups this node waits for, or did a moment ago, to advertise to peers. */
  interests(): { readonly version: number; readonly groups: readonly WaitGroup[] } {
    return { version: this.#interest.version, groups: describeAll(this.#table.all()) }
  }

  /** The newest version that every peer holds. */
  interestEchoed(version: number): void {
    const { missed, isLess } = this.#interest.echoed(version, this.#table.all())
    // No hint arrived, so it counts as another first query.
    this.#wakeAll(missed, 'request')
    if (isLess) this.#paced.fallback.touchAll()
  }

  /** The groups to poll now, in one query. Pass the result to `fallbackResult` or `fallbackFailed`. */
  dueForFallback(): GroupKey[] {
    return this.#paced.ask(this.#table.waiting(), this.#ports.now())
  }

  fallbackResult(keysWithWork: Iterable<GroupKey>): void {
    const now = this.#ports.now()
    for (const { group, isUnannounced } of this.#paced.answered(keysWithWork, now)) {
      this.#wakePath.wake(group, { source: 'fallback', isUnannounced }, now)
    }
  }

  fallbackFailed(): void {
    this.#paced.failed(this.#ports.now())
  }

  /** Runs everything that is due: takes back grants, retries, removes idle groups. */
  tick(): void {
    const now = this.#ports.now()
    this.#wakePath.tick(now)
    if (this.#table.forgetIdle(now)) {
      this.#interest.end()
      this.#ports.interestChanged?.(this.#interest.version)
    }
  }

  /** When `tick` is due next; Infinity for never. */
  nextTickAt(): number {
    return Math.min(this.#wakePath.nextTickAt(), this.#table.nextForgetAt())
  }

  /** When `tick` or `dueForFallback` is due next. */
  nextWakeAt(): number {
    return Math.min(this.nextTickAt(), this.#paced.nextAt(this.#table.waiting()))
  }

  getStats(): SharedStateStats {
    return buildStats({
      sidecars: this.#sidecars.size,
      groups: this.#table.all(),
      counters: this.#counters,
      mode: this.#paced.mode,
      backoffThreshold: this.#settings.backoffThreshold,
      groupsMax: this.#settings.statsGroupsMax,
      dueAt: (group) => this.#paced.fallback.dueAt(group),
      now: this.#ports.now(),
    })
  }

  #announce(
    kind: 'available' | 'free',
    hint: WakeHint,
    origin: Origin,
    count: number | undefined,
  ): void {
    const cause: Cause =
      typeof origin === 'string'
        ? { source: origin, count }
        : { source: 'local', from: origin.sidecarId, count }
    this.#wakeMatching(hint, cause)
    this.#ports.broadcast(hint, kind)
  }

  #wakeMatching(hint: WakeHint, cause: Cause): void {
    const now = this.#ports.now()
    for (const group of this.#table.index.matching(hint)) this.#wakePath.wake(group, cause, now)
  }

  /** Grants a pop for each group, or, with very many, polls those without a pop in flight in one query. */
  #wakeAll(groups: readonly GroupState[], source: GrantSource): void {
    const now = this.#ports.now()
    const areMany = groups.length > this.#settings.wakeAllGroupsMax
    for (const group of groups) {
      if (areMany && group.lock.state === 'free') this.#paced.fallback.makeDue(group, now)
      else this.#wakePath.wake(group, { source }, now)
    }
  }

  #setWaiting(group: GroupState, sidecarId: SidecarId, count: number): void {
    this.#table.setWaiting(group, sidecarId, count, this.#ports.now())
    if (group.waiters.total > 0) this.#paced.fallback.touch(group)
  }

  /** Ignores a worker that is gone. Records last that the worker is alive: `act` may change its grants. */
  #handle<R>(sidecarId: SidecarId, key: GroupKey, act: (group: GroupState, now: number) => R) {
    if (!this.#sidecars.has(sidecarId)) return undefined
    const group = this.#table.get(key)
    const now = this.#ports.now()
    const result = group === undefined ? undefined : act(group, now)
    this.#wakePath.heard(sidecarId, now)
    return result
  }
}
