// Tracks queues whose namespace or task has changed. A push or ack that was in flight at that moment may have
// read the old values. Its hint then reaches the waiters of the old namespace, but not those of the new one.
// The node cannot know when the last such call ends, and a lock against these calls would slow down every
// push. Instead, the node that moved a queue sends a hint with the new namespace and task to all nodes. It
// repeats this hint at growing intervals, for much longer than a push takes.
import type { WakeHint } from '@rouse/protocol'

/** The hint is sent in the 1st, 2nd, 4th, 8th and 16th round after the move. */
const roundMs = 500
const roundsMax = 16
const queuesMax = 1_000

export interface MovedQueuesOptions {
  readonly again: (hint: WakeHint) => void
  /** Called when more queues have moved than are tracked: waiters of any of them may miss a hint. */
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

  /** The hint carries the queue's new namespace and task. */
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
