// Micro-batching without waiting. A request that finds a free slot leaves at once, alone; requests that arrive while
// all slots are busy leave together as soon as one is free. So an idle worker adds no delay and a busy one makes big
// calls, and there is no timer to tune.

export interface BatcherOptions<R> {
  /** Calls under way at once. */
  readonly slots: number
  /** Requests that may wait; one more is refused by `add`. */
  readonly pendingMax: number
  /** How much of a call a request takes up. */
  readonly weigh: (request: R) => { readonly count: number; readonly bytes: number }
  readonly countMax: number
  readonly bytesMax: number
  /** Whether a request may share a call with the first of the batch. */
  readonly joins?: (first: R, other: R) => boolean
  /** Carries out a batch and settles every request in it; never rejects. */
  readonly run: (batch: R[]) => Promise<void>
}

export class Batcher<R> {
  readonly #options: BatcherOptions<R>
  #pending: R[] = []
  #busy = 0
  #idle: (() => void)[] = []
  calls = 0
  requests = 0

  constructor(options: BatcherOptions<R>) {
    this.#options = options
  }

  get pending(): number {
    return this.#pending.length
  }

  /** False when too many wait already. */
  add(request: R): boolean {
    if (this.#pending.length >= this.#options.pendingMax) return false
    this.#pending.push(request)
    this.#fire()
    return true
  }

  /** Resolves when nothing is pending or under way. */
  async idle(): Promise<void> {
    if (this.#busy === 0 && this.#pending.length === 0) return
    await new Promise<void>((resolve) => this.#idle.push(resolve))
  }

  #fire(): void {
    while (this.#busy < this.#options.slots && this.#pending.length > 0) {
      const batch = this.#take()
      this.#busy += 1
      this.calls += 1
      this.requests += batch.length
      void this.#options.run(batch).finally(() => {
        this.#busy -= 1
        this.#fire()
        if (this.#busy === 0 && this.#pending.length === 0) {
          for (const resolve of this.#idle.splice(0)) resolve()
        }
      })
    }
  }

  /** As many of the oldest as fit one call. A request too big for any limit still leaves, alone. */
  #take(): R[] {
    const { weigh, countMax, bytesMax, joins } = this.#options
    const batch: R[] = []
    const left: R[] = []
    let count = 0
    let bytes = 0
    let full = false
    for (const request of this.#pending) {
      const weight = weigh(request)
      const first = batch[0]
      full ||=
        first !== undefined && (count + weight.count > countMax || bytes + weight.bytes > bytesMax)
      if (full || (first !== undefined && joins !== undefined && !joins(first, request))) {
        left.push(request)
        continue
      }
      batch.push(request)
      count += weight.count
      bytes += weight.bytes
    }
    this.#pending = left
    return batch
  }
}
