// Queues whose namespace or task has changed. A push or an ack that was under way then had read where the queue was: when
// it commits, those who wait there are told, and those who wait where the queue is now are not. Nobody can say when the
// last of them has ended, and to make them wait for each other would cost every push. So a node that moved a queue has
// all nodes look again at where it is now, ever later, for much longer than a push takes.
import type { WakeHint } from '@rouse/protocol'

/** In the 1st, 2nd, 4th, 8th and 16th round after it moved. */
const roundMs = 500
const roundsMax = 16
const queuesMax = 1_000

export interface MovedQueuesOptions {
  readonly again: (hint: WakeHint) => void
  /** More queues moved lately than are kept here: anything may be missed. */
  readonly tooMany: () => void
  readonly roundMs?: number
}

export class MovedQueues {
  readonly #options: MovedQueuesOptions
  readonly #queues = new Map<string, { readonly hint: WakeHint; rounds: number }>()
  #timer: NodeJS.Timeout | undefined

  constructor(options: MovedQueuesOptions) {
    this.#options = options
  }

  /** The hint says where the queue is now. */
  add(hint: WakeHint): void {
    if (this.#queues.size >= queuesMax && !this.#queues.has(hint.queue)) {
      this.#options.tooMany()
      return
    }
    this.#queues.set(hint.queue, { hint, rounds: 0 })
    this.#timer ??= setInterval(() => this.#round(), this.#options.roundMs ?? roundMs)
  }

  stop(): void {
    this.#queues.clear()
    this.#rest()
  }

  #round(): void {
    for (const [name, queue] of this.#queues) {
      queue.rounds += 1
      if (queue.rounds >= roundsMax) this.#queues.delete(name)
      if (Number.isInteger(Math.log2(queue.rounds))) this.#options.again(queue.hint)
    }
    if (this.#queues.size === 0) this.#rest()
  }

  #rest(): void {
    clearInterval(this.#timer)
    this.#timer = undefined
  }
}
