// The queues that have metrics of their own. A scraper keeps every series for weeks, so their number is limited,
// and all other queues are counted together as `_other`.
//
// A counter must never go down. So a count is added once, to the queue's own counter or to `_other`, and is
// never moved: a queue that gets a counter later begins at 0.
import { BusiestQueues } from './busiest-queues.ts'
import { addAll, type Counts, noCounts, type QueueCounts, sumOf } from './queue-counts.ts'

/** No queue has this name in metrics, even if one is called so. */
export const otherQueues = '_other'

export class NamedQueues {
  readonly #busiest: BusiestQueues
  readonly #named = new Map<string, Counts>()
  readonly #others: Counts = noCounts()

  constructor(max: number) {
    this.#busiest = new BusiestQueues(max, (queue) => this.#named.delete(queue))
  }

  add(queue: string, counts: Readonly<Counts>, nowMs: number): void {
    const isNamed = queue !== otherQueues && this.#busiest.note(queue, sumOf(counts), nowMs)
    addAll(isNamed ? this.#countsOf(queue) : this.#others, counts)
  }

  /** The named queues, and the others together. */
  counts(): QueueCounts[] {
    return [...this.#named, [otherQueues, this.#others]]
  }

  #countsOf(queue: string): Counts {
    let counts = this.#named.get(queue)
    if (counts === undefined) this.#named.set(queue, (counts = noCounts()))
    return counts
  }
}
