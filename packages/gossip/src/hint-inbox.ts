import { ReplayWindow } from './replay-window.ts'

/** What a peer says of the batches it sent us. */
export interface BatchCount {
  /** The last batch before those that are counted. Another one than before: it had given us up, and none of
   * the batches in between went to us. */
  readonly countedFrom: number
  /** Every batch up to this one has been sent for the last time. */
  readonly settledBatch: number
  /** So many of the batches between the two went to us. */
  readonly batchesSent: number
}

const none = -1

/** Batches of hints from one peer: each is taken once though it comes twice, and what the peer says it sent
 * is compared with what came. */
export class HintInbox {
  #seen: ReplayWindow | undefined
  #countedFrom = none
  #settled = none
  /** Of those that the peer counts. */
  #batches = 0
  /** Of those that were settled when the peer last said so. */
  #missing = 0
  #lost = 0

  get lost(): number {
    return this.#lost
  }

  /** False: it came before. */
  accept(batchNumber: number): boolean {
    this.#seen ??= new ReplayWindow()
    if (!this.#seen.accept(batchNumber)) return false
    if (batchNumber > this.#countedFrom) {
      this.#batches += 1
      // It was missed already. Left in the sum, it would make up for the next one that is lost.
      if (batchNumber <= this.#settled) this.#missing -= 1
    }
    return true
  }

  /** Answers how many more are missing than when the peer last said so. */
  compare({ countedFrom, settledBatch, batchesSent }: BatchCount): number {
    const isAnew = countedFrom !== this.#countedFrom
    const isSkipped = isAnew && this.#countedFrom !== none && countedFrom > this.#settled
    if (isAnew) {
      this.#countedFrom = countedFrom
      this.#batches = this.#seen?.countAbove(countedFrom) ?? 0
    }
    const later = this.#seen?.countAbove(Math.max(settledBatch, countedFrom)) ?? 0
    const missing = batchesSent - (this.#batches - later)
    // How many it did not send, or sent before it was a member of ours, is not known: that is one look.
    const isAny = isSkipped || missing > 0
    const lost = isAnew ? Number(isAny) : Math.max(0, missing - this.#missing)
    this.#settled = settledBatch
    this.#missing = missing
    this.#lost += lost
    return lost
  }
}
