// Fetched messages that wait for a handler. Each ordered partition is a lane with at most one handler at a
// time, and lanes take turns. One more lane holds all messages that are not ordered.
import type { Held } from './held.ts'
import type { Message } from './message.ts'

/** The front of a lane is compacted after this many taken messages. */
const compactAt = 1_000

const unordered = ''

interface Lane {
  readonly key: string
  waiting: Held[]
  /** How many of `waiting` are already taken. */
  taken: number
  busy: boolean
}

export class Backlog {
  readonly #isOrdered: (message: Message) => boolean
  readonly #lanes = new Map<string, Lane>()
  /** Lanes with messages and without a handler, oldest first. */
  #free: Lane[] = []
  #size = 0

  constructor(isOrdered: (message: Message) => boolean) {
    this.#isOrdered = isOrdered
  }

  /** Waiting messages. */
  get size(): number {
    return this.#size
  }

  /** Handlers that could start now. */
  get runnable(): number {
    const loose = this.#lanes.get(unordered)
    if (loose === undefined || unTaken(loose) === 0) return this.#free.length
    return this.#free.length - 1 + unTaken(loose)
  }

  add(messages: readonly Held[]): void {
    for (const held of messages) {
      const lane = this.#lane(this.#isOrdered(held.message) ? held.message.partitionId : unordered)
      lane.waiting.push(held)
      if (!lane.busy && unTaken(lane) === 1) this.#free.push(lane)
    }
    this.#size += messages.length
  }

  /** Takes the next messages for one handler, at most `countMax`; none if no handler may start. */
  take(countMax: number): Held[] {
    const taken: Held[] = []
    while (taken.length < countMax) {
      const lane = this.#free[0]
      if (lane === undefined) break
      const count = Math.min(unTaken(lane), countMax - taken.length)
      for (let i = 0; i < count; i += 1) taken.push(lane.waiting[lane.taken + i] as Held)
      lane.taken += count
      this.#size -= count
      lane.busy = lane.key !== unordered
      this.#free.shift()
      if (!lane.busy && unTaken(lane) > 0) this.#free.push(lane)
      this.#tidy(lane)
    }
    return taken
  }

  /** The handler of these messages has ended: their lanes are free. */
  done(messages: readonly Held[]): void {
    for (const { message } of messages) {
      const lane = this.#lanes.get(message.partitionId)
      if (lane?.busy !== true) continue
      lane.busy = false
      if (unTaken(lane) > 0) this.#free.push(lane)
      else this.#tidy(lane)
    }
  }

  /** Removes and returns the waiting messages that match. */
  remove(matches: (held: Held) => boolean): Held[] {
    const removed: Held[] = []
    for (const lane of this.#lanes.values()) {
      const waiting = lane.waiting.slice(lane.taken)
      lane.waiting = waiting.filter((held) => !matches(held))
      lane.taken = 0
      if (lane.waiting.length === waiting.length) continue
      removed.push(...waiting.filter(matches))
      if (lane.waiting.length === 0) this.#free = this.#free.filter((other) => other !== lane)
      this.#tidy(lane)
    }
    this.#size -= removed.length
    return removed
  }

  #lane(key: string): Lane {
    let lane = this.#lanes.get(key)
    if (lane === undefined) {
      lane = { key, waiting: [], taken: 0, busy: false }
      this.#lanes.set(key, lane)
    }
    return lane
  }

  #tidy(lane: Lane): void {
    if (unTaken(lane) > 0) {
      if (lane.taken < compactAt) return
      lane.waiting = lane.waiting.slice(lane.taken)
      lane.taken = 0
      return
    }
    lane.waiting = []
    lane.taken = 0
    if (!lane.busy) this.#lanes.delete(lane.key)
  }
}

function unTaken(lane: Lane): number {
  return lane.waiting.length - lane.taken
}
