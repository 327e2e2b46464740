// A worker's access to PostgreSQL. Every request of the worker passes through `submit` and is executed in one
// of a few shared SQL calls. Its promise settles exactly once.

import { isCompletionGroup } from '@rouse/protocol'
import { type AckItem, type Connections, countingQueries, popBytesMaxDefault } from '@rouse/storage'
import { CircuitBreaker } from './circuit-breaker.ts'
import type { Coordinator, Grant } from './coordinator.ts'
import { EndWaits } from './ends/end-waits.ts'
import type { SidecarObserver } from './observer.ts'
import type { AckOutcome, Operation, OperationResults } from './operation.ts'
import { PopScheduler, popSlots } from './pops/pop-scheduler.ts'
import { SidecarError } from './sidecar-error.ts'
import { WriteOperations } from './writes/write-operations.ts'

export interface SidecarOptions {
  readonly executor: Connections
  readonly coordinator: Coordinator
  /** The name of the worker, unique on its node. */
  readonly worker: string
  /** From 0 to 1, for jitter. */
  readonly random: () => number
  readonly waitersMax?: number
  /** The deadline of every operation except POP_WAIT. */
  readonly timeoutMs?: number
  /** Whether leases survive a crash of the database. */
  readonly durableLeases?: boolean
  /** The maximum bytes of payload and headers in one pop response. */
  readonly popBytesMax?: number
  /** If a pop takes longer than this, the primary gets a notice that its grant has arrived. */
  readonly takenAfterMs?: number
  readonly observer?: SidecarObserver | undefined
}

export interface SidecarStats {
  readonly waiting: number
  readonly waitingByQueue: Readonly<Record<string, number>>
  readonly databaseUp: boolean
  /** SQL calls so far, by function. */
  readonly queries: Readonly<Record<string, number>>
  /** SQL calls and the requests that shared them, by kind. */
  readonly batches: Readonly<Record<string, { readonly calls: number; readonly requests: number }>>
  /** Writes whose calls have exceeded their deadline, by kind. */
  readonly overdue: Readonly<Record<string, number>>
}

export const sidecarDefaults = {
  waitersMax: 15_000,
  timeoutMs: 5_000,
  durableLeases: false,
  popBytesMax: popBytesMaxDefault,
  takenAfterMs: 25,
} as const

/**
 * The maximum number of connections in use at once: two each for pushes, acks and transactions, `popSlots`
 * for pops, and one each for renewals, releases, progress, lookups of ended messages and the probe.
 */
export const sidecarConnections = 2 * 3 + popSlots + 5

export class SidecarDbPool {
  readonly #breaker: CircuitBreaker
  readonly #pops: PopScheduler
  readonly #ends: EndWaits
  readonly #waitersMax: number
  readonly #writes: WriteOperations
  readonly #queries: Record<string, number> = {}

  constructor(options: SidecarOptions) {
    const { coordinator, random, observer, timeoutMs = sidecarDefaults.timeoutMs } = options
    const executor = countingQueries(options.executor, this.#queries, {
      nowMs: () => performance.now(),
      onCalled: (name, ms) => observer?.called(name, ms),
    })
    const onUnavailable = ({ code }: SidecarError): void => {
      this.#breaker.failed()
      if (code === 'outcome_unknown') coordinator.notifyOutcomeUnknown()
    }
    this.#breaker = new CircuitBreaker({
      executor: options.executor,
      onRecovered: () => {
        this.#pops.recheckAll()
        this.#ends.recheckAll()
      },
      random,
    })
    this.#writes = new WriteOperations({
      connections: executor,
      coordinator,
      timeoutMs,
      random,
      nowMs: () => performance.now(),
      onUnavailable,
      reserve: (item) => (this.#pops.deque.count > 0 ? this.#pops.direct.reserve(item) : undefined),
      observer,
    })
    const takenAfterMs = options.takenAfterMs ?? sidecarDefaults.takenAfterMs
    this.#waitersMax = options.waitersMax ?? sidecarDefaults.waitersMax
    this.#ends = new EndWaits({
      executor,
      coordinator,
      worker: options.worker,
      random,
      takenAfterMs,
      onUnavailable,
    })
    this.#pops = new PopScheduler({
      executor,
      coordinator,
      timeoutMs,
      random,
      waitersMax: this.#waitersMax,
      durable: options.durableLeases ?? sidecarDefaults.durableLeases,
      bytesMax: options.popBytesMax ?? sidecarDefaults.popBytesMax,
      takenAfterMs,
      nowMs: () => performance.now(),
      onBlocked: (untilMs) => coordinator.notifyBlocked(untilMs),
      // If the release fails, the lease ends when it expires.
      release: (leaseId) => void this.#writes.release(leaseId).catch(() => {}),
      releaseNow: (leaseId) => this.#writes.release(leaseId),
      onUnavailable,
      observer,
    })
  }

  /**
   * This method is not async, and neither are the others that a waiting pop passes through: an async frame
   * would cost memory per waiter.
   */
  submit<O extends Operation>(operation: O): Promise<OperationResults[O['kind']]> {
    try {
      return this.#carryOut(operation) as Promise<OperationResults[O['kind']]>
    } catch (error) {
      return Promise.reject(error as Error)
    }
  }

  /** The primary granted a group's in-flight lock to this worker. */
  onGrant(grant: Grant): void {
    if (isCompletionGroup(grant.description.group)) this.#ends.onGrant(grant)
    else this.#pops.onGrant(grant)
  }

  /** The primary has registered this worker. Waiters that arrived earlier are reported again. */
  registered(): void {
    this.#pops.registered()
    this.#ends.registered()
  }

  stats(): SidecarStats {
    return {
      waiting: this.#waiting,
      waitingByQueue: this.#waitingByQueue(),
      databaseUp: this.#breaker.up,
      queries: { ...this.#queries },
      batches: { ...this.#writes.batches(), pop: this.#pops.batches() },
      overdue: this.#writes.overdue(),
    }
  }

  /** Answers waiting requests with what there is, in slices, and finishes the calls in flight. */
  async drain(): Promise<void> {
    await this.#pops.drain()
    await this.#ends.drain()
    await this.#writes.idle()
  }

  async stop(): Promise<void> {
    await this.drain()
    await this.#breaker.stop()
  }

  #carryOut(operation: Operation): Promise<unknown> {
    switch (operation.kind) {
      case 'PUSH':
        this.#refuseWhileDown()
        return this.#writes.push(operation.items, operation.bytes)
      case 'POP':
        this.#refuseWhileDown()
        return this.#pops.pop(operation.pop, operation.signal)
      case 'POP_WAIT':
        return this.#pops.popWait(operation.pop, operation.timeoutMs, operation.signal)
      case 'ACK':
        return this.#ack([operation.item], operation.group).then(([outcome]) => outcome)
      case 'ACK_BATCH':
        return this.#ack(operation.items, operation.group)
      case 'TRANSACTION':
        this.#refuseWhileDown()
        return this.#writes.transact(operation.transaction)
      case 'RENEW_LEASE':
        this.#refuseWhileDown()
        return this.#writes.renew(operation)
      case 'PROGRESS':
        this.#refuseWhileDown()
        return this.#writes.progress(operation.report)
      case 'END_WAIT':
        if (this.#waiting >= this.#waitersMax) {
          throw new SidecarError('overloaded', 'too many requests are waiting on this worker')
        }
        return this.#ends.wait(
          operation.queue,
          operation.message,
          operation.timeoutMs,
          operation.signal,
        )
      case 'RELEASE':
        this.#refuseWhileDown()
        return this.#writes.release(operation.leaseId)
      default:
        return operation satisfies never
    }
  }

  get #waiting(): number {
    return this.#pops.waiting + this.#ends.waiting
  }

  #waitingByQueue(): Record<string, number> {
    const counts = this.#pops.waitingByQueue()
    for (const [queue, count] of this.#ends.waitingByQueue()) {
      counts[queue] = (counts[queue] ?? 0) + count
    }
    return counts
  }

  #ack(items: readonly AckItem[], group: string | undefined): Promise<AckOutcome[]> {
    this.#refuseWhileDown()
    return items.length === 0 ? Promise.resolve([]) : this.#writes.ack(items, group)
  }

  #refuseWhileDown(): void {
    if (!this.#breaker.up) {
      throw new SidecarError('database_unavailable', 'PostgreSQL does not answer')
    }
  }
}
