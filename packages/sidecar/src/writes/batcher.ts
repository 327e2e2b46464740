// Micro-batching. A request that finds no call under way leaves at once, alone; requests that arrive meanwhile leave
// together when it ends. So an idle worker adds no delay and a busy one makes big calls.
//
// The other slots are for what does not fit into one call and for calls that take long: small calls side by side would
// mostly wait for each other's locks, but a stuck one must not hold up those who have nothing to do with it.

export interface BatcherOptions<R> {
  /** Calls under way at once, at most. */
  readonly slots: number
  /** The next slot opens for what has waited so long; 0: at once. */
  readonly patienceMs: number
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
  /** Oldest first. */
  readonly #pending = new Set<R>()
  #busy = 0
  /** Something pending did not fit into the last call, or may not share one with it. */
  #isLeftOver = false
  #impatient: NodeJS.Timeout | undefined
  #idle: (() => void)[] = []
  calls = 0
  requests = 0

  constructor(options: BatcherOptions<R>) {
    this.#options = options
  }

  get pending(): number {
    return this.#pending.size
  }

  /** False when too many wait already. */
  add(request: R): boolean {
    if (this.#pending.size >= this.#options.pendingMax) return false
    this.#pending.add(request)
    this.#fire()
    return true
  }

  /** Takes it out of the line; what is under way goes on. */
  remove(request: R): void {
    this.#pending.delete(request)
    if (this.#pending.size > 0) return
    this.#calm()
    this.#settleIdle()
  }

  /** Resolves when nothing is pending or under way. */
  async idle(): Promise<void> {
    if (this.#busy === 0 && this.#pending.size === 0) return
    await new Promise<void>((resolve) => this.#idle.push(resolve))
  }

  #fire(): void {
    while (this.#mayBegin()) this.#begin()
    if (this.#pending.size === 0 || this.#busy >= this.#options.slots) return
    this.#impatient ??= setTimeout(() => {
      this.#begin()
      this.#fire()
    }, this.#options.patienceMs)
  }

  #mayBegin(): boolean {
    const { slots, patienceMs } = this.#options
    if (this.#pending.size === 0 || this.#busy >= slots) return false
    return this.#busy === 0 || this.#isLeftOver || patienceMs === 0
  }

  #begin(): void {
    const batch = this.#take()
    this.#busy += 1
    this.calls += 1
    this.requests += batch.length
    this.#calm()
    void this.#options.run(batch).finally(() => {
      this.#busy -= 1
      this.#fire()
      this.#settleIdle()
    })
  }

  #calm(): void {
    clearTimeout(this.#impatient)
    this.#impatient = undefined
  }

  #settleIdle(): void {
    if (this.#busy > 0 || this.#pending.size > 0) return
    for (const resolve of this.#idle.splice(0)) resolve()
  }

  /** As many of the oldest as fit one call. A request too big for any limit still leaves, alone. */
  #take(): R[] {
    const { weigh, countMax, bytesMax, joins } = this.#options
    const batch: R[] = []
    let count = 0
    let bytes = 0
    for (const request of this.#pending) {
      const weight = weigh(request)
      const first = batch[0]
      if (first !== undefined) {
        if (count + weight.count > countMax || bytes + weight.bytes > bytesMax) break
        if (joins !== undefined && !joins(first, request)) continue
      }
      batch.push(request)
      this.#pending.delete(request)
      count += weight.count
      bytes += weight.bytes
    }
    this.#isLeftOver = this.#pending.size > 0
    return batch
  }
}
