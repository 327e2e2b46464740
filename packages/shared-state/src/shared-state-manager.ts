// Decides, in the node's primary, which worker pops for which group of waiters, and when. Everything
// that happens comes in as a call; everything to do goes out through a port.
//
//   a waiter comes      setWaiting, requestGrant          → a grant, or the pop in flight is repeated
//   a grant is answered grantTaken, releaseGroup          → perhaps the next grant: the wake chain
//   something is new    notifyMessageAvailable (ours)     → a grant for each group that waits for it,
//                       handleMessageAvailable (a peer's)   and a hint to the peers if it is ours
//   time passes         tick, dueForFallback              → grants taken back, retried, checked
//   something breaks    unregisterSidecar, reportFault    → locks freed, aggressive mode
//
// The parts: group-state.ts (the lock), wake-path.ts (who gets it), fallback-poll.ts (checks without hints),
// poll-mode.ts and paced-checks.ts (how often), group-table.ts (which groups there are), interest.ts
// (what peers know).
import type { WaitGroup, WakeHint } from '@rouse/protocol'
import { startBackoff } from './backoff.ts'
import { countOf, type GroupKey, groupKey } from './group-key.ts'
import type { Cause, Group } from './group-state.ts'
import { GroupTable } from './group-table.ts'
import { describeAll, Interest } from './interest.ts'
import { PacedChecks } from './paced-checks.ts'
import type { Fault, MomentaryFault, StandingFault } from './poll-mode.ts'
import type { GrantOutcome, GrantSource, SharedStatePorts, SidecarId, WakeSource } from './ports.ts'
import { type SharedStateSettings, sharedStateDefaults } from './settings.ts'
import { buildStats, type SharedStateStats } from './stats.ts'
import { WakeCounters } from './wake-counters.ts'
import { WakePath } from './wake-path.ts'

/** Where news of our own comes from: a call of a worker, a timer of the primary, or what it did after a NOTIFY. */
export type Origin = { readonly sidecarId: SidecarId } | 'timer' | 'notify'

export class SharedStateManager {
  readonly #ports: SharedStatePorts
  readonly #settings: SharedStateSettings
  readonly #sidecars = new Set<SidecarId>()
  readonly #counters = new WakeCounters()
  readonly #interest: Interest
  readonly #table: GroupTable
  readonly #wakePath: WakePath
  readonly #paced: PacedChecks

  constructor(ports: SharedStatePorts, settings: Partial<SharedStateSettings> = {}) {
    this.#ports = ports
    this.#settings = { ...sharedStateDefaults, ...settings }
    this.#interest = new Interest(ports.interestChanged !== undefined)
    this.#table = new GroupTable(this.#settings)
    this.#paced = new PacedChecks(
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
      onFree: (group) => this.#paced.checks.touch(group),
      onUnused: (group, sidecarId) => this.#setWaiting(group, sidecarId, 0),
      onChecked: (found) => this.#paced.checked(found, ports.now()),
      onFault: (fault) => this.reportFault(fault),
    })
  }

  registerSidecar(sidecarId: SidecarId): void {
    if (this.#sidecars.size >= this.#settings.sidecarsMax && !this.#sidecars.has(sidecarId)) {
      throw new RangeError(`more than ${this.#settings.sidecarsMax} sidecars`)
    }
    this.#sidecars.add(sidecarId)
  }

  /** A worker said something that is none of the calls here: it has not stopped. */
  heardSidecar(sidecarId: SidecarId): void {
    if (this.#sidecars.has(sidecarId)) this.#wakePath.heard(sidecarId, this.#ports.now())
  }

  /** Frees what it held. One that died may have committed what nobody told of: that is looked for. */
  unregisterSidecar(sidecarId: SidecarId, how: 'died' | 'left' = 'died'): void {
    if (!this.#sidecars.delete(sidecarId)) return
    for (const group of this.#table.all()) {
      if (group.waiters.of(sidecarId) > 0) this.#setWaiting(group, sidecarId, 0)
    }
    this.#wakePath.sidecarGone(this.#table.all(), sidecarId)
    if (how === 'left') this.notifyEverything('ipc')
    else this.announceEverything('sidecar_lost')
  }

  /** How many wait at a worker for a group. False: refused, the table of groups is full, or the worker
   * is not registered (any more). */
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

  /** A new waiter's first query. It comes as a grant: at once, or after the pop in flight. */
  requestGrant(sidecarId: SidecarId, key: GroupKey): void {
    this.#handle(sidecarId, key, (group, now) => this.#wakePath.request(group, sidecarId, now))
  }

  /** Whether a group's ladder allows another check. */
  shouldCheckGroup(key: GroupKey): boolean {
    const group = this.#table.get(key)
    if (group === undefined) return true
    return this.#ports.now() - group.checkedAt >= group.backoff.intervalMs
  }

  /** The number of a grant that is taken already; undefined while another pop is in flight. */
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

  /** The pop ended, and found so many messages. Send the new count of waiters before it. False: the
   * grant had been taken back. */
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
      this.#paced.checks.touch(group)
    }
  }

  /** Messages became deliverable through this node. */
  notifyMessageAvailable(hint: WakeHint, origin: Origin): void {
    this.#announce('available', hint, origin, countOf(hint))
  }

  /** A lane was freed through this node: whoever waits for its group may go on with it. */
  notifyPartitionFree(hint: WakeHint, origin: Origin): void {
    this.#announce('free', hint, origin, undefined)
  }

  /** A peer, the database by NOTIFY, or a worker told of messages; all peers were told as well. */
  handleMessageAvailable(hint: WakeHint, source: 'udp' | 'notify' | 'ipc' = 'udp'): void {
    this.#wakeMatching(hint, { source, count: countOf(hint) })
  }

  /** Anything may have been committed through this node, and may yet be: by a worker that died, or a
   * write whose outcome is unknown. */
  announceEverything(fault?: MomentaryFault): void {
    if (fault !== undefined) this.reportFault(fault)
    this.notifyEverything('ipc')
    this.#ports.broadcastEverything()
  }

  /** Anything may have been committed: a peer died, or hints were lost. */
  notifyEverything(source: WakeSource): void {
    this.#wakeAll([...this.#table.waiting()], source)
  }

  /** Something that carries hints broke. `listener_lost` and `peer_silent` stand until cleared. */
  reportFault(fault: Fault): void {
    this.#paced.reportFault(fault, this.#ports.now())
  }

  clearFault(fault: StandingFault): void {
    this.#paced.clearFault(fault, this.#ports.now())
  }

  /** What this node waits for, to be told to peers; it includes what it waited for a moment ago. */
  interests(): { readonly version: number; readonly groups: readonly WaitGroup[] } {
    return { version: this.#interest.version, groups: describeAll(this.#table.all()) }
  }

  /** The newest version that every peer holds. */
  interestEchoed(version: number): void {
    const { missed, isLess } = this.#interest.echoed(version, this.#table.all())
    // Nobody told of anything: it is the first query once more.
    this.#wakeAll(missed, 'request')
    if (isLess) this.#paced.checks.touchAll()
  }

  /** The groups to ask the database about now, in one query. Answer with one of the next two. */
  dueForFallback(): GroupKey[] {
    return this.#paced.ask(this.#table.waiting(), this.#ports.now())
  }

  fallbackResult(keysWithWork: Iterable<GroupKey>): void {
    const now = this.#ports.now()
    for (const { group, isNews } of this.#paced.answered(keysWithWork, now)) {
      this.#wakePath.wake(group, { source: 'fallback', isNews }, now)
    }
  }

  fallbackFailed(): void {
    this.#paced.failed(this.#ports.now())
  }

  /** Takes back, retries and forgets what is due. */
  tick(): void {
    const now = this.#ports.now()
    this.#wakePath.tick(now)
    if (this.#table.forgetIdle(now)) {
      this.#interest.end()
      this.#ports.interestChanged?.(this.#interest.version)
    }
  }

  /** When `tick` has something to do; Infinity for never. */
  nextTickAt(): number {
    return Math.min(this.#wakePath.nextTickAt(), this.#table.nextForgetAt())
  }

  /** When `tick` or `dueForFallback` has something to do. */
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
      dueAt: (group) => this.#paced.checks.dueAt(group),
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

  /** A pop for each, or, if there are very many, one query about those that nobody pops for already. */
  #wakeAll(groups: readonly Group[], source: GrantSource): void {
    const now = this.#ports.now()
    const areMany = groups.length > this.#settings.wakeAllGroupsMax
    for (const group of groups) {
      if (areMany && group.lock.state === 'free') this.#paced.checks.makeDue(group, now)
      else this.#wakePath.wake(group, { source }, now)
    }
  }

  #setWaiting(group: Group, sidecarId: SidecarId, count: number): void {
    this.#table.setWaiting(group, sidecarId, count, this.#ports.now())
    if (group.waiters.total > 0) this.#paced.checks.touch(group)
  }

  /** A message of a worker. Late ones of a worker that is gone are passed over; any other shows that it
   * lives, which is for after the message: what it says may change what the worker should get. */
  #handle<R>(sidecarId: SidecarId, key: GroupKey, act: (group: Group, now: number) => R) {
    if (!this.#sidecars.has(sidecarId)) return undefined
    const group = this.#table.get(key)
    const now = this.#ports.now()
    const result = group === undefined ? undefined : act(group, now)
    this.#wakePath.heard(sidecarId, now)
    return result
  }
}
