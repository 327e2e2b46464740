import { ReplayWindow } from './replay-window.ts'

/** Batches of hints from one peer: each is taken once though it comes twice, and what the peer says it sent
 * is compared with what came. */
export class HintInbox {
  #seen: ReplayWindow | undefined
  #batches = 0
  #sentBefore = 0
  #missing = 0
  #lost = 0

  get lost(): number {
    return this.#lost
  }

  /** False: it came before. */
  accept(batchNumber: number): boolean {
    this.#seen ??= new ReplayWindow()
    const isNew = this.#seen.accept(batchNumber)
    if (isNew) this.#batches += 1
    return isNew
  }

  /** The peer sent us `batchesSent` of all batches up to `settledBatch`. Answers how many more are
   * missing than when it last said so. */
  compare(settledBatch: number, batchesSent: number): number {
    const later = this.#seen?.countAbove(settledBatch) ?? 0
    const missing = batchesSent - (this.#batches - later)
    // It began to count anew: it had given us up, and sent nothing in between.
    const isRestarted = batchesSent < this.#sentBefore
    const lost = isRestarted ? 1 : Math.max(0, missing - this.#missing)
    this.#sentBefore = batchesSent
    this.#missing = missing
    this.#lost += lost
    return lost
  }
}
