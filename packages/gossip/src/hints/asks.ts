// Hints that went to some of the interested peers. Each of these peers is asked to report the hint as
// settled. If one of them does not report in time, or falls silent, the other peers get the hint.
//
// A lost, repeated or late report is harmless: the others get a hint that they do not need. A report of a
// peer that was not asked is ignored.
import type { Batch } from './hint-batch.ts'
import type { PendingHint } from './pending-hints.ts'

/** Beyond this number every interested peer gets the hint at once. */
export const asksMax = 4_096

export interface Ask<To> {
  readonly pending: PendingHint
  /** Chosen peers that have not reported yet. */
  readonly awaited: Set<To>
  /** All peers that got the hint. */
  readonly told: ReadonlySet<To>
  dueAt: number
}

interface AskedBatch<To> {
  /** The recipients that have not reported any hint of the batch. */
  readonly silent: Set<To>
  readonly asks: Map<number, Ask<To>>
}

export class Asks<To> {
  readonly #batches = new Map<number, AskedBatch<To>>()
  #size = 0
  /** No ask is due before this time. */
  #nextAt = Number.POSITIVE_INFINITY

  get nextAt(): number {
    return this.#nextAt
  }

  get isFull(): boolean {
    return this.#size >= asksMax
  }

  add({ number, audience, asks }: Batch<To>): void {
    if (asks.size === 0) return
    this.#batches.set(number, { silent: new Set(audience.keys()), asks: new Map(asks) })
    this.#size += asks.size
    for (const { dueAt } of asks.values()) this.#nextAt = Math.min(this.#nextAt, dueAt)
  }

  /** A peer reports that the messages of a hint are taken. Returns true if this is its first report about
   * the batch: the batch has arrived there. */
  report(peer: To, number: number, askNumber: number): boolean {
    const batch = this.#batches.get(number)
    const ask = batch?.asks.get(askNumber)
    if (batch === undefined || ask === undefined || !ask.told.has(peer)) return false
    const isFirst = batch.silent.delete(peer)
    ask.awaited.delete(peer)
    if (ask.awaited.size === 0) this.#remove(number, batch, askNumber)
    if (this.#size === 0) this.#nextAt = Number.POSITIVE_INFINITY
    return isFirst
  }

  /** The peer is silent or gone, so its report is not awaited any longer. */
  giveUp(peer: To, now: number): void {
    for (const { asks } of this.#batches.values()) {
      for (const ask of asks.values()) {
        if (!ask.awaited.has(peer)) continue
        ask.dueAt = now
        this.#nextAt = Math.min(this.#nextAt, now)
      }
    }
  }

  /** Takes the hints that at least one of the chosen peers has not settled in time. */
  takeDue(now: number): Ask<To>[] {
    if (this.#nextAt > now) return []
    const due: Ask<To>[] = []
    this.#nextAt = Number.POSITIVE_INFINITY
    for (const [number, batch] of this.#batches) {
      for (const [askNumber, ask] of batch.asks) {
        if (ask.dueAt > now) {
          this.#nextAt = Math.min(this.#nextAt, ask.dueAt)
          continue
        }
        due.push(ask)
        this.#remove(number, batch, askNumber)
      }
    }
    return due
  }

  #remove(number: number, batch: AskedBatch<To>, askNumber: number): void {
    if (batch.asks.delete(askNumber)) this.#size -= 1
    if (batch.asks.size === 0) this.#batches.delete(number)
  }
}
