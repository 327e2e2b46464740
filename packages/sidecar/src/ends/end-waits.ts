// Requests that wait for the end of a message, on the same wake path as pops: each queue of this worker is a
// wait group, whose grant allows a lookup instead of a pop. One lookup serves all queues with a grant, and all
// their waiters.
//
//   a waiter arrives   it registers, then requests a grant: what ended before is found by its lookup, what ends
//                      later has a hint, or the group is polled
//   a grant arrives    the next lookup includes the queue
//   a lookup ends      waiters whose message has ended are answered; the others stay
//
// The answer to a grant is always `empty`. Otherwise an end without a hint, which is the rule for plain acks,
// would look like a lost hint.
import { setTimeout as delay, setImmediate as nextTurn } from 'node:timers/promises'
import { completionGroup, type GrantOutcome, type WaitGroup } from '@rouse/protocol'
import { type AwaitedMessage, type Executor, endedMessages } from '@rouse/storage'
import type { Coordinator, Grant } from '../coordinator.ts'
import type { LeaveSignal } from '../operation.ts'
import type { SidecarError } from '../sidecar-error.ts'
import { connectionFailureOf, retrying } from '../writes/retry-split.ts'

export interface EndWaitsOptions {
  readonly executor: Executor
  readonly coordinator: Coordinator
  /** The name of this worker, unique on its node: its waiters wait for messages that no other worker knows. */
  readonly worker: string
  /** From 0 to 1, for jitter. */
  readonly random: () => number
  /** If a lookup takes longer than this, the primary gets a notice that its grant has arrived. */
  readonly takenAfterMs: number
  readonly onUnavailable: (error: SidecarError) => void
}

/** How a wait ended. `left`: the client disconnected. */
export type EndOutcome = 'ended' | 'timeout' | 'left' | 'draining'

/** The maximum number of messages in one lookup. */
const lookupMax = 1_000
/** The number of waiters answered in one slice of a drain. */
const drainSlice = 500

interface EndWaiter {
  readonly message: AwaitedMessage
  readonly settle: (outcome: EndOutcome) => void
}

interface EndGroup {
  readonly description: WaitGroup
  readonly waiters: Set<EndWaiter>
  /** As last reported to the primary. */
  reported: number
}

export class EndWaits {
  readonly #options: EndWaitsOptions
  /** By queue. */
  readonly #groups = new Map<string, EndGroup>()
  /** Grants that wait for their lookup, by queue. */
  readonly #granted = new Map<string, Grant>()
  /** Queues of the lookup in progress. */
  readonly #looking = new Set<string>()
  #running: Promise<void> | undefined
  #isDraining = false
  waiting = 0

  constructor(options: EndWaitsOptions) {
    this.#options = options
  }

  waitingByQueue(): Iterable<readonly [queue: string, count: number]> {
    return [...this.#groups].map(([queue, { waiters }]) => [queue, waiters.size] as const)
  }

  wait(
    queue: string,
    message: AwaitedMessage,
    timeoutMs: number,
    signal: LeaveSignal,
  ): Promise<EndOutcome> {
    if (this.#isDraining) return Promise.resolve('draining')
    return new Promise<EndOutcome>((resolve) => {
      const group = this.#groupOf(queue)
      const waiter: EndWaiter = {
        message,
        settle: (outcome) => {
          if (!group.waiters.delete(waiter)) return
          clearTimeout(timer)
          signal.removeEventListener('abort', onGone)
          this.waiting -= 1
          resolve(outcome)
        },
      }
      const end = (outcome: EndOutcome): void => {
        waiter.settle(outcome)
        this.#reportCount(queue, group)
      }
      const onGone = (): void => end('left')
      const timer = setTimeout(() => end('timeout'), timeoutMs)
      group.waiters.add(waiter)
      this.waiting += 1
      signal.addEventListener('abort', onGone)
      if (signal.aborted) return onGone()
      this.#reportCount(queue, group)
      this.#options.coordinator.requestGrant(group.description)
    })
  }

  onGrant(grant: Grant): void {
    const { coordinator } = this.#options
    const queue = queueOf(grant)
    if (this.#isDraining || !this.#groups.has(queue)) coordinator.releaseGroup(grant, 'unused', 0)
    // The primary took back an older grant whose lookup still runs.
    else if (this.#looking.has(queue) || this.#granted.has(queue)) {
      coordinator.releaseGroup(grant, 'contended', 0)
    } else {
      this.#granted.set(queue, grant)
      if (this.#running === undefined) this.#running = this.#lookAll()
      else coordinator.grantTaken(grant)
    }
  }

  /** Called when PostgreSQL answers again. */
  recheckAll(): void {
    for (const { description } of this.#groups.values()) {
      this.#options.coordinator.requestGrant(description)
    }
  }

  /** The primary has registered this worker. It ignored earlier reports, so they are sent again. */
  registered(): void {
    for (const [queue, group] of this.#groups) {
      group.reported = 0
      this.#reportCount(queue, group)
    }
    this.recheckAll()
  }

  /** Answers all waiters, in slices, and finishes the lookup in progress. */
  async drain(): Promise<void> {
    this.#isDraining = true
    let answered = 0
    for (const [queue, group] of this.#groups) {
      for (const waiter of group.waiters) {
        waiter.settle('draining')
        answered += 1
        if (answered % drainSlice === 0) await delay(1)
      }
      this.#reportCount(queue, group)
    }
    await this.#running
  }

  async #lookAll(): Promise<void> {
    while (this.#granted.size > 0) {
      // The primary sends the grants of all polled queues together. One turn later all of them have arrived.
      await nextTurn()
      const grants = [...this.#granted]
      this.#granted.clear()
      for (const [queue] of grants) this.#looking.add(queue)
      await this.#lookFor(grants)
      this.#looking.clear()
    }
    this.#running = undefined
  }

  async #lookFor(grants: readonly (readonly [queue: string, grant: Grant])[]): Promise<void> {
    const { coordinator, takenAfterMs, onUnavailable } = this.#options
    const taken = setTimeout(() => {
      for (const [, grant] of grants) coordinator.grantTaken(grant)
    }, takenAfterMs)
    let outcome: GrantOutcome = 'empty'
    try {
      await this.#settleEnded(grants.map(([queue]) => queue))
    } catch (error) {
      // Waiters keep waiting: `recheckAll` or a fallback poll finds what they missed.
      outcome = 'error'
      const failure = connectionFailureOf(error)
      if (failure.code === 'database_unavailable') onUnavailable(failure)
    }
    clearTimeout(taken)
    for (const [queue, grant] of grants) {
      const group = this.#groups.get(queue)
      if (group !== undefined) this.#reportCount(queue, group)
      coordinator.releaseGroup(grant, outcome, 0)
    }
  }

  async #settleEnded(queues: readonly string[]): Promise<void> {
    const { executor, random } = this.#options
    const waiters = queues.flatMap((queue) => [...(this.#groups.get(queue)?.waiters ?? [])])
    for (let at = 0; at < waiters.length; at += lookupMax) {
      const some = waiters.slice(at, at + lookupMax)
      const messages = some.map(({ message }) => message)
      const ended = await retrying(() => endedMessages(executor, messages), random)
      for (const position of ended) some[position]?.settle('ended')
    }
  }

  #groupOf(queue: string): EndGroup {
    let group = this.#groups.get(queue)
    if (group === undefined) {
      const name = `${completionGroup}${this.#options.worker}`
      group = { description: { source: { queue }, group: name }, waiters: new Set(), reported: 0 }
      this.#groups.set(queue, group)
    }
    return group
  }

  /** Reports the number of waiters to the primary if it changed, and removes a group without any. */
  #reportCount(queue: string, group: EndGroup): void {
    const { size } = group.waiters
    if (size === 0 && this.#groups.get(queue) === group) this.#groups.delete(queue)
    if (group.reported === size) return
    group.reported = size
    this.#options.coordinator.setWaiting(group.description, size)
  }
}

function queueOf({ description: { source } }: Grant): string {
  return 'queue' in source ? source.queue : ''
}
