import type { GrantOutcome, WaitGroup, WakeHint } from '@rouse/protocol'
import { type GroupKey, groupKey } from '../../src/index.ts'
import { hintOf, isMeant, type ModelMessage, type Place } from './model-database.ts'
import type { Simulation } from './simulation.ts'

interface Waiter {
  isWaiting: boolean
  /** A push in flight may deliver its message to this waiter. */
  isReserved: boolean
}

/**
 * A model of a broker worker: waiters by group, an ordered channel to the primary, and pops that read the
 * database at one time and return at a later one.
 */
export class ModelWorker {
  readonly #world: Simulation
  readonly id: number
  readonly #waiters = new Map<GroupKey, Waiter[]>()
  readonly #leased = new Map<ModelMessage, string>()
  readonly #popping = new Set<GroupKey>()
  #channelFreeAt = 0
  isAlive = true

  constructor(world: Simulation, id: number) {
    this.#world = world
    this.id = id
  }

  waitingFor(key: GroupKey): number {
    return this.#waiters.get(key)?.length ?? 0
  }

  /**
   * Adds a waiter: reports it to the primary, then requests a grant for its first query. It may leave later.
   */
  addWaiter(description: WaitGroup): void {
    const key = groupKey(description)
    const waiter: Waiter = { isWaiting: true, isReserved: false }
    this.#waiters.set(key, [...(this.#waiters.get(key) ?? []), waiter])
    this.#tellCount(description)
    this.send(() => this.#world.requestGrant(this.id, key))
    const { choices, schedule } = this.#world
    if (choices.chance(0.5)) return
    schedule.after(choices.between(1, choices.chance(0.5) ? 60 : 400), () => {
      if (this.isAlive && waiter.isWaiting) this.#removeWaiter(description, waiter)
    })
  }

  clientsGone(key: GroupKey): void {
    if (!this.isAlive) return
    for (const waiter of this.#waiters.get(key) ?? []) {
      this.#removeWaiter(this.#world.describe(key), waiter)
    }
  }

  push(place: Place): void {
    const { choices, schedule, database } = this.#world
    schedule.after(choices.between(0, 5), () => {
      if (!this.isAlive) return
      const count = choices.one([1, 1, 2, 3])
      const reserved = count === 1 ? this.#reserve(place) : undefined
      if (reserved !== undefined) return this.#pushDirectly(place, ...reserved)
      for (let i = 0; i < count; i += 1) database.commit(place)
      this.#tellAfter(choices.between(0, 3), { ...hintOf(place, null), count })
    })
  }

  /** A free waiter of a queue or partition whose group this worker does not pop just now. */
  #reserve(place: Place): [WaitGroup, Waiter] | undefined {
    for (const [key, waiters] of this.#waiters) {
      const description = this.#world.describe(key)
      const waiter = waiters.find(({ isReserved }) => !isReserved)
      if (waiter === undefined || this.#popping.has(key)) continue
      if ('queue' in description.source && isMeant(place, description)) return [description, waiter]
    }
    return undefined
  }

  /** The database decides at the commit whether the waiter gets the message. The waiter may leave at any time. */
  #pushDirectly(place: Place, description: WaitGroup, waiter: Waiter): void {
    const { choices, schedule, database } = this.#world
    waiter.isReserved = true
    schedule.after(choices.between(0, 5), () => {
      if (!this.isAlive) return
      const message = database.commitFor(place, description.group)
      const isLeased = !message.pendingFor.has(description.group)
      if (isLeased) this.#leased.set(message, description.group)
      schedule.after(choices.between(0, 4), () => {
        if (!this.isAlive) return
        waiter.isReserved = false
        this.#leased.delete(message)
        if (isLeased && waiter.isWaiting) this.#removeWaiter(description, waiter)
        else if (isLeased) this.#giveBack(message, description)
        const hint = { ...hintOf(place, null), count: 1 }
        this.#tellAfter(0, isLeased ? { ...hint, except: description.group } : hint)
      })
    })
  }

  grantArrived(key: GroupKey, grantId: number): void {
    const { choices, schedule } = this.#world
    if (!this.isAlive) return
    const description = this.#world.describe(key)
    const waiting = this.waitingFor(key)
    if (waiting === 0) {
      this.send(() => this.#world.released(key, grantId, this.#world.declined(), 0))
      return
    }
    const free = (this.#waiters.get(key) ?? []).filter(({ isReserved }) => !isReserved).length
    if (free === 0) {
      this.send(() => this.#world.released(key, grantId, this.#world.allReserved(), 0))
      return
    }
    this.#popping.add(key)
    this.send(() => this.#world.taken(this.id, key, grantId))
    schedule.after(choices.between(0, 8), () => {
      if (!this.isAlive) return
      const fate = this.#world.fateOfPop()
      const found = fate === 'reads' ? this.#world.database.pop(description, free) : []
      for (const message of found) this.#leased.set(message, description.group)
      const outcome = fate === 'reads' ? (found.length > 0 ? 'messages' : 'empty') : fate
      schedule.after(choices.between(0, 4), () => {
        if (this.isAlive) this.#popAnswered(description, grantId, found, outcome)
      })
    })
  }

  die(): void {
    this.isAlive = false
    const { choices, schedule } = this.#world
    const leased = [...this.#leased]
    schedule.after(choices.between(0, 3), () => this.#world.workerDied(this.id))
    for (const [message, group] of leased) {
      schedule.after(choices.between(1, 50), () => {
        message.pendingFor.add(group)
        this.#world.hint(hintOf(message.place, group), 'timer')
      })
    }
  }

  /** Sends a message to the primary. Messages arrive in order; those of a dead worker may be lost. */
  send(deliver: () => void): void {
    const { choices, schedule } = this.#world
    const delayMs = choices.between(0, choices.chance(0.8) ? 3 : 25)
    this.#channelFreeAt = Math.max(this.#channelFreeAt, schedule.now + delayMs)
    schedule.at(this.#channelFreeAt, () => {
      if (this.isAlive || this.#world.choices.chance(0.5)) deliver()
    })
  }

  /** Distributes the messages of a pop. A message whose waiter has left becomes available again. */
  #popAnswered(
    description: WaitGroup,
    grantId: number,
    found: readonly ModelMessage[],
    outcome: GrantOutcome,
  ): void {
    const key = groupKey(description)
    this.#popping.delete(key)
    for (const message of found) {
      this.#leased.delete(message)
      const waiter = this.#waiters.get(key)?.find(({ isReserved }) => !isReserved)
      if (waiter === undefined) this.#giveBack(message, description)
      else this.#removeWaiter(description, waiter)
    }
    this.#tellCount(description)
    this.send(() => this.#world.released(key, grantId, outcome, found.length))
  }

  #giveBack(message: ModelMessage, { group }: WaitGroup): void {
    message.pendingFor.add(group)
    this.#tellAfter(0, hintOf(message.place, group))
  }

  #removeWaiter(description: WaitGroup, waiter: Waiter): void {
    const key = groupKey(description)
    waiter.isWaiting = false
    this.#waiters.set(
      key,
      (this.#waiters.get(key) ?? []).filter((one) => one !== waiter),
    )
    this.#tellCount(description)
  }

  #tellCount(description: WaitGroup): void {
    const count = this.waitingFor(groupKey(description))
    this.send(() => this.#world.setWaiting(this.id, description, count))
  }

  #tellAfter(delayMs: number, hint: WakeHint): void {
    this.#world.schedule.after(delayMs, () => {
      if (this.isAlive) this.send(() => this.#world.hint(hint, { sidecarId: this.id }))
    })
  }
}
