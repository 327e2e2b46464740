// How a lost batch is detected. Each flush of a peer uses up four batch numbers, even if it has fewer
// batches: 4 to 7, 8 to 11, 12 to 15. In this example, we became a member at the peer after batch 3. Batch 4
// is for us, 8 for others, 12 for us, and both copies of 12 are lost.
//
//   a heartbeat reports                     we have   missing
//   counted from 3, settled 7,  sent 1      4         0
//   counted from 3, settled 11, sent 1      4         0       12 will be sent again, so it does not count yet
//   counted from 3, settled 15, sent 2      4         1       one more than before: report a loss
//   counted from 3, settled 15, sent 2      4         1       as before
//   counted from 3, settled 19, sent 3      4, 16     1       12 is still missing, 16 is not
//   counted from 23, settled 23, sent 0     4, 16             the sender dropped us in between: report a loss
//
// If the first copy of 12 had arrived, we would have 4 and 12 at the second heartbeat, and 12 would not
// count, because it is not settled. If 12 arrives after the third heartbeat, the number of missing batches
// goes back to 0; otherwise the next lost batch would not be noticed.
import { ReplayWindow } from '../wire/replay-window.ts'

/** A peer's report about the batches it sent us. */
export interface BatchCount {
  /** The last batch before the counted ones. If it changes, the peer has dropped us and added us again. None
   * of the batches in between were sent to us. */
  readonly countedFrom: number
  /** Every batch up to this one is settled: both copies have been sent. */
  readonly settledBatch: number
  /** How many of the batches after `countedFrom`, up to `settledBatch`, were sent to us. */
  readonly batchesSent: number
}

const none = -1

/** Batches of hints from one peer. Accepts each batch once, although it is sent twice, and compares what
 * the peer reports as sent with what arrived. */
export class HintInbox {
  #seen: ReplayWindow | undefined
  #countedFrom = none
  #settled = none
  /** Received batches that the peer counts. */
  #batches = 0
  /** Missing batches as of the peer's last report. */
  #missing = 0
  #lost = 0

  get lost(): number {
    return this.#lost
  }

  /** Returns false if the batch has arrived before. */
  accept(batchNumber: number): boolean {
    this.#seen ??= new ReplayWindow()
    if (!this.#seen.accept(batchNumber)) return false
    if (batchNumber > this.#countedFrom) {
      this.#batches += 1
      // The batch was counted as missing. Without this correction the next lost batch would not be noticed.
      if (batchNumber <= this.#settled) this.#missing -= 1
    }
    return true
  }

  /** Returns how many more batches are missing than at the peer's last report. */
  compare({ countedFrom, settledBatch, batchesSent }: BatchCount): number {
    const isRestarted = countedFrom !== this.#countedFrom
    const isSkipped = isRestarted && this.#countedFrom !== none && countedFrom > this.#settled
    if (isRestarted) {
      this.#countedFrom = countedFrom
      this.#batches = this.#seen?.countAbove(countedFrom) ?? 0
    }
    const later = this.#seen?.countAbove(Math.max(settledBatch, countedFrom)) ?? 0
    const missing = batchesSent - (this.#batches - later)
    // The peer may have omitted us from some batches, or sent some before it became a member here. Their
    // number is unknown, so they count as one.
    const isAny = isSkipped || missing > 0
    const lost = isRestarted ? Number(isAny) : Math.max(0, missing - this.#missing)
    this.#settled = settledBatch
    this.#missing = missing
    this.#lost += lost
    return lost
  }
}
