// A model of a node: the real manager, model workers and a model database, on a seeded schedule. Rules are
// checked during the run, and violations are recorded as sentences.
import type { GrantOutcome, WaitGroup, WakeHint } from '@rouse/protocol'
import {
  type GroupKey,
  groupKey,
  type Origin,
  SharedStateManager,
  type SharedStateSettings,
} from '../../src/index.ts'
import { hintOf, isMeant, ModelDatabase, type Place } from './model-database.ts'
import { ModelWorker } from './model-worker.ts'
import { Choices, Schedule } from './schedule.ts'

const places: readonly Place[] = [
  { queue: 'q/1', partition: 'p', namespace: 'n', task: 't' },
  { queue: 'q/1', partition: '*', namespace: 'n', task: 't' },
  { queue: 'q', partition: '1/p', namespace: null, task: null },
]

const descriptions: readonly WaitGroup[] = [
  { source: { queue: 'q/1' }, group: 'g' },
  { source: { queue: 'q/1' }, group: 'h' },
  { source: { queue: 'q/1', partition: 'p' }, group: 'g' },
  { source: { queue: 'q', partition: '1/p' }, group: 'g' },
  { source: { namespace: 'n' }, group: 'g' },
  { source: { task: 't' }, group: 'h' },
]

/** Deliberate defects of the node. The rules must detect each of them. */
export type Sabotage =
  | 'hint in flight dropped'
  | 'hint without waiters dropped'
  | 'death unreported'
  | 'unused as empty'
  | 'found count too high'
  | 'reserved waiters answered as unused'
  | 'delivered group gets a hint'

export interface SimulationOptions {
  readonly seed: number
  readonly sabotage?: Sabotage
  /** If true, hints get lost, pops fail, and fallback polls run. */
  readonly isLossy?: boolean
  readonly settings?: Partial<SharedStateSettings>
  /** The cluster of this node. Absent: the node is alone. */
  readonly cluster?: SimulatedCluster
}

/** What the nodes of a cluster share. */
export interface SimulatedCluster {
  readonly choices: Choices
  readonly schedule: Schedule
  readonly database: ModelDatabase
  readonly groups: readonly WaitGroup[]
  broadcast(hint: WakeHint, served: ReadonlySet<string>): void
  broadcastEverything(): void
}

interface OutstandingGrant {
  readonly grantId: number
  readonly sidecarId: number
  readonly at: number
  isTaken: boolean
}

/**
 * Ranges of the time until a worker takes a grant. Most workers take it at once, some are busy, and a few are
 * busy for longer than the grant lasts.
 */
const grantDelaysMs = [
  [0, 3],
  [0, 3],
  [0, 3],
  [0, 3],
  [5, 60],
  [5, 60],
  [90, 350],
] as const

/** How long a lossy run continues after its last action: enough for the slowest fallback poll. */
const lossyTailMs = 30_000
const stepsMax = 200_000

export class Simulation {
  readonly choices: Choices
  readonly schedule: Schedule
  readonly database: ModelDatabase
  readonly violations: string[] = []
  readonly manager: SharedStateManager
  readonly #options: SimulationOptions
  readonly #workers = new Map<number, ModelWorker>()
  readonly #registered = new Set<number>()
  readonly #byKey = new Map(descriptions.map((one) => [groupKey(one), one]))
  readonly #grants = new Map<GroupKey, OutstandingGrant>()
  /** Groups that got a hint since their last grant. */
  readonly #hinted = new Set<GroupKey>()
  /** Groups whose wake chain ended with an empty pop. */
  readonly #ended = new Set<GroupKey>()
  readonly #counts = new Map<string, number>()
  /** The wait groups of this run. In runs with few groups, workers compete more often. */
  readonly #groups: readonly WaitGroup[]
  #lastWorkerId = 0

  constructor(options: SimulationOptions) {
    this.#options = options
    const { cluster } = options
    this.choices = cluster?.choices ?? new Choices(options.seed)
    this.schedule = cluster?.schedule ?? new Schedule()
    this.database = cluster?.database ?? new ModelDatabase()
    const groups = this.choices.between(1, descriptions.length)
    const all = cluster?.groups ?? descriptions
    this.#groups = Array.from({ length: groups }, () => this.choices.one(all))
    this.manager = new SharedStateManager(
      {
        now: () => this.schedule.now,
        grant: (sidecarId, group, grantId, source) =>
          this.#granted(sidecarId as number, groupKey(group), grantId, source),
        broadcast: (hint, _kind, served) => cluster?.broadcast(hint, served),
        broadcastEverything: () => cluster?.broadcastEverything(),
      },
      { groupLingerMs: 60, ...options.settings },
    )
  }

  run(): readonly string[] {
    const lastAt = this.begin()
    const endsAt = this.#options.isLossy === true ? lastAt + lossyTailMs : Number.POSITIVE_INFINITY
    for (let step = 0; this.#step(endsAt); step += 1) {
      if (step > stepsMax) {
        this.violations.push('the run never ends')
        break
      }
    }
    this.checkTheEnd()
    return this.violations
  }

  /** Starts the workers and plans all actions. Returns the time of the last one. */
  begin(): number {
    for (let i = this.choices.between(1, 3); i > 0; i -= 1) this.#startWorker()
    // Half of the runs start with waiters. The runs are short, because in a long run a later event would
    // repair some faults.
    for (let i = this.choices.between(-4, 4); i > 0; i -= 1) {
      this.choices.one([...this.#workers.values()]).addWaiter(this.choices.one(this.#groups))
    }
    let at = this.choices.between(0, 30)
    for (let i = this.choices.between(1, this.choices.one([3, 8, 30])); i > 0; i -= 1) {
      at += this.choices.chance(0.7) ? this.choices.between(0, 6) : this.choices.between(0, 150)
      this.schedule.at(at, () => this.#act())
    }
    return at
  }

  /** A hint of a peer arrived. */
  heard(hint: WakeHint, onServed: () => void): void {
    this.#noteHint(hint)
    this.manager.handleMessageAvailable(hint, 'udp', onServed)
  }

  heardEverything(): void {
    for (const key of this.#byKey.keys()) this.#hinted.add(key)
    this.manager.notifyEverything('udp')
  }

  nextActionAt(): number {
    return this.#options.isLossy === true ? this.manager.nextWakeAt() : this.manager.nextTickAt()
  }

  /** Runs what is due in the manager. */
  act(): void {
    this.manager.tick()
    if (this.#options.isLossy === true) this.#fallback()
  }

  describe(key: GroupKey): WaitGroup {
    return this.#byKey.get(key) as WaitGroup
  }

  declined(): GrantOutcome {
    return this.#options.sabotage === 'unused as empty' ? 'empty' : 'unused'
  }

  /** All waiters of the group are reserved for pushes in flight. */
  allReserved(): GrantOutcome {
    const { sabotage } = this.#options
    return sabotage === 'reserved waiters answered as unused' ? 'unused' : 'contended'
  }

  fateOfPop(): 'reads' | 'contended' | 'error' {
    if (this.choices.chance(0.15)) return 'contended'
    return this.#options.isLossy === true && this.choices.chance(0.1) ? 'error' : 'reads'
  }

  setWaiting(sidecarId: number, description: WaitGroup, count: number): void {
    this.#counts.set(`${sidecarId} ${groupKey(description)}`, count)
    this.manager.setWaiting(sidecarId, description, count)
  }

  requestGrant(sidecarId: number, key: GroupKey): void {
    this.#hinted.add(key)
    this.manager.requestGrant(sidecarId, key, { unlessEmpty: this.choices.chance(0.8) })
  }

  taken(sidecarId: number, key: GroupKey, grantId: number): void {
    const grant = this.#grants.get(key)
    if (grant?.grantId === grantId) grant.isTaken = true
    this.manager.grantTaken(sidecarId, key, grantId)
  }

  released(key: GroupKey, grantId: number, outcome: GrantOutcome, found: number): void {
    if (this.#grants.get(key)?.grantId === grantId) {
      this.#grants.delete(key)
      if (outcome === 'empty' && !this.#hinted.has(key)) this.#ended.add(key)
    }
    this.manager.releaseGroup(
      key,
      grantId,
      outcome,
      this.#options.sabotage === 'found count too high' ? found + 1 : found,
    )
  }

  hint(hint: WakeHint, origin: Origin | 'udp'): void {
    if (this.#options.isLossy === true && this.choices.chance(0.5)) return
    if (this.#isDropped(hint)) return
    this.#noteHint(hint)
    if (origin === 'udp') this.manager.handleMessageAvailable(hint)
    else if (hint.group == null) {
      const isForAll = this.#options.sabotage === 'delivered group gets a hint'
      this.manager.notifyMessageAvailable(isForAll ? { ...hint, except: undefined } : hint, origin)
    } else this.manager.notifyPartitionFree(hint, origin)
  }

  workerDied(id: number): void {
    if (this.#options.sabotage === 'death unreported') return
    this.#registered.delete(id)
    for (const key of this.#byKey.keys()) {
      this.#hinted.add(key)
      this.#counts.delete(`${id} ${key}`)
      if (this.#grants.get(key)?.sidecarId === id) this.#grants.delete(key)
    }
    this.manager.unregisterSidecar(id)
    if (this.choices.chance(0.7)) this.#startWorker()
  }

  #startWorker(): void {
    this.#lastWorkerId += 1
    this.#workers.set(this.#lastWorkerId, new ModelWorker(this, this.#lastWorkerId))
    this.#registered.add(this.#lastWorkerId)
    this.manager.registerSidecar(this.#lastWorkerId)
  }

  #act(): void {
    const alive = [...this.#workers.values()].filter((worker) => worker.isAlive)
    const place = this.choices.one(places)
    const dice = this.choices.fraction()
    if (alive.length === 0 || dice < 0.15) {
      // In a cluster, hints of peers come from the simulated ones.
      const origin = dice < 0.08 || this.#options.cluster !== undefined ? 'timer' : 'udp'
      this.database.commit(place)
      this.schedule.after(this.choices.between(0, 10), () => this.hint(hintOf(place, null), origin))
      return
    }
    const worker = this.choices.one(alive)
    if (dice < 0.45) worker.push(place)
    else if (dice < 0.95) worker.addWaiter(this.choices.one(this.#groups))
    else worker.die()
  }

  /** Runs the next step: an event, or an action that the manager is due to take. */
  #step(endsAt: number): boolean {
    const managerAt = this.nextActionAt()
    const at = Math.min(managerAt, this.schedule.nextAt())
    if (at === Number.POSITIVE_INFINITY || at > endsAt) return false
    if (managerAt > this.schedule.nextAt()) {
      this.schedule.runNext()
      return true
    }
    this.schedule.now = Math.max(this.schedule.now, managerAt)
    this.act()
    return true
  }

  #isDropped(hint: WakeHint): boolean {
    const { sabotage } = this.#options
    for (const [key, description] of this.#byKey) {
      if (!concerns(hint, description)) continue
      if (sabotage === 'hint in flight dropped' && this.#isInFlight(key)) return true
      if (sabotage === 'hint without waiters dropped' && this.#waiting(key) === 0) return true
    }
    return false
  }

  #noteHint(hint: WakeHint): void {
    for (const [key, description] of this.#byKey) {
      if (concerns(hint, description)) this.#hinted.add(key)
    }
  }

  #fallback(): void {
    const keys = [...this.manager.dueForFallback().keys()]
    if (keys.length === 0) return
    this.schedule.after(this.choices.between(0, 5), () => {
      if (this.choices.chance(0.2)) return this.manager.fallbackFailed()
      const withWork = keys.filter((key) => this.database.pending(this.describe(key)).length > 0)
      for (const key of withWork) this.#hinted.add(key)
      this.manager.fallbackResult(withWork)
    })
  }

  #granted(sidecarId: number, key: GroupKey, grantId: number, source: string): void {
    const before = this.#grants.get(key)
    const wasTakenBack =
      before !== undefined && !before.isTaken && this.schedule.now - before.at >= 100
    if (before !== undefined && !wasTakenBack) this.#broken(`${key} was granted twice`)
    if (!this.#registered.has(sidecarId))
      this.#broken(`${key} was granted to a worker that is gone`)
    if ((this.#counts.get(`${sidecarId} ${key}`) ?? 0) === 0) {
      this.#broken(`${key} was granted to a worker without waiters`)
    }
    if (this.#ended.has(key) && !this.#hinted.has(key)) {
      this.#broken(`${key} was granted (${source}) after an empty pop, without a hint`)
    }
    this.#grants.set(key, { grantId, sidecarId, at: this.schedule.now, isTaken: false })
    this.#hinted.delete(key)
    this.#ended.delete(key)
    const [least, most] = this.choices.one(grantDelaysMs)
    const delayMs = this.choices.between(least, most)
    const worker = this.#workers.get(sidecarId)
    this.schedule.after(delayMs, () => {
      if (this.choices.chance(0.1)) worker?.clientsGone(key)
      worker?.grantArrived(key, grantId)
    })
  }

  checkTheEnd(): void {
    const { groups_in_flight } = this.manager.getStats().group_backoff
    // A lossy run may end while grants are in flight.
    if (groups_in_flight > 0 && this.#options.isLossy !== true)
      this.#broken('a grant was left over')
    for (const [key, description] of this.#byKey) {
      const pending = this.database.pending(description).length
      const waiting = this.#waiting(key)
      if (pending > 0 && waiting > 0)
        this.#broken(`${waiting} waiters missed ${pending} messages of ${key}`)
    }
  }

  #waiting(key: GroupKey): number {
    return [...this.#workers.values()]
      .filter((worker) => worker.isAlive)
      .reduce((sum, worker) => sum + worker.waitingFor(key), 0)
  }

  #isInFlight(key: GroupKey): boolean {
    return this.#grants.has(key)
  }

  #broken(what: string): void {
    this.violations.push(`at ${this.schedule.now} ms: ${what}`)
  }
}

function concerns(hint: WakeHint, description: WaitGroup): boolean {
  const isGroup = hint.group === null || hint.group === description.group
  return isGroup && hint.except !== description.group && isMeant(hint as Place, description)
}
