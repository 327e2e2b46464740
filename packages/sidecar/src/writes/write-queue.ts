// Writes of one kind, in line for a few slots. A call that takes too long keeps its slot and its connection until it
// ends, and those who wait for it are answered at their deadlines. Where all slots are taken up like that, whoever
// comes is refused at once: so a database that confirms nothing costs neither memory nor the connections of others.

import { SidecarError } from '../sidecar-error.ts'
import { Batcher, type BatcherOptions } from './batcher.ts'
import { PendingWrite } from './pending-write.ts'
import type { SeparateLine } from './separate-line.ts'

export interface WriteLineOptions<I, O> extends BatcherOptions<PendingWrite<I, O>> {
  /** From its arrival on, a write is answered within this time. */
  readonly timeoutMs: number
  /** Where writes go whose queue has a locked partition. */
  readonly separate?: SeparateLine<I, O> | undefined
}

export class WriteLine<I, O> {
  readonly #options: WriteLineOptions<I, O>
  readonly #batcher: Batcher<PendingWrite<I, O>>
  /** Calls under way for longer than a write may take. */
  #overdue = 0

  constructor(options: WriteLineOptions<I, O>) {
    this.#options = options
    this.#batcher = new Batcher({ ...options, run: (batch) => this.#run(batch) })
  }

  get calls(): number {
    return this.#batcher.calls
  }

  get requests(): number {
    return this.#batcher.requests
  }

  submit(input: I): Promise<O> {
    return new Promise<O>((resolve, reject) => {
      const { slots, timeoutMs, separate } = this.#options
      const write = new PendingWrite(input, resolve, reject)
      if (this.#overdue >= slots) {
        write.reject(new SidecarError('database_unavailable', 'PostgreSQL confirms no writes'))
      } else if (separate?.take(write) === true) {
        write.answerWithin(timeoutMs, () => {})
      } else if (this.#batcher.add(write)) {
        write.answerWithin(timeoutMs, () => this.#batcher.remove(write))
      } else {
        write.reject(new SidecarError('overloaded', 'too many requests wait for PostgreSQL'))
      }
    })
  }

  async idle(): Promise<void> {
    // In this order: a call that met a lock moves its writes to the separate line before it ends.
    await this.#batcher.idle()
    await this.#options.separate?.idle()
  }

  async #run(taken: PendingWrite<I, O>[]): Promise<void> {
    // What a lock was met for while they waited in line.
    const { separate } = this.#options
    const batch = separate?.isEmpty === false ? taken.filter((one) => !separate.take(one)) : taken
    if (batch.length === 0) return
    let isOverdue = false
    const timer = setTimeout(() => {
      isOverdue = true
      this.#overdue += 1
    }, this.#options.timeoutMs)
    try {
      await this.#options.run(batch)
    } finally {
      clearTimeout(timer)
      if (isOverdue) this.#overdue -= 1
    }
  }
}
