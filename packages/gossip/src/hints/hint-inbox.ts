// How a lost batch is noticed. A flush takes four numbers, whether it needs them or not: 4 to 7, 8 to 11, 12 to 15. We
// became a member after batch 3; then 4 was for us, 8 for others, 12 for us, and 12 is lost twice.
//
//   a heartbeat says                               we have   missing
//   counted from 3, settled 7,  sent 1             4         0
//   counted from 3, settled 11, sent 1             4         0        12 rides once more, so it does not count yet
//   counted from 3, settled 15, sent 2             4         1        one more than before: one look
//   counted from 3, settled 15, sent 2             4         1        as before
//   counted from 3, settled 19, sent 3             4, 16     1        12 is still missing, 16 is not
//   counted from 23, settled 23, sent 0            4, 16              it had given us up in between: one look
//
// If 12 had come on its first ride, we would have 4 and 12 at the second heartbeat, and 12 would be left out of the sum:
// it is not settled. If it comes after the third it is missing no more, or it would make up for the next one that is.
import { ReplayWindow } from '../wire/replay-window.ts'

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
