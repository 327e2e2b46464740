// A worker's access to PostgreSQL. Every request of the worker passes through `submit` and is executed in one
// of a few shared SQL calls. Its promise settles exactly once.

import { type AckItem, type Connections, countingQueries, popBytesMaxDefault } from '@rouse/storage'
import { CircuitBreaker } from './circuit-breaker.ts'
import type { Coordinator, Grant } from './coordinator.ts'
import type { SidecarObserver } from './observer.ts'
import type { AckOutcome, Operation, OperationResults } from './operation.ts'
import { PopScheduler, popSlots } from './pops/pop-scheduler.ts'
import { SidecarError } from './sidecar-error.ts'
import { WriteOperations } from './writes/write-operations.ts'

export interface SidecarOptions {
  readonly executor: Connections
  readonly coordinator: Coordinator
  /** From 0 to 1, for jitter. */
  readonly random: () => number
  readonly waitersMax?: number
  /** The deadline of every operation except POP_WAIT. */
  readonly timeoutMs?: number
  /** Whether leases survive a crash of the database. */
  readonly durableLeases?: boolean
  /** The maximum bytes of payload and headers in one pop response. */
  readonly popBytesMax?: number
  /** After this time in a pop, the primary gets a notice that its grant has arrived. */
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
 * for pops, and one each for renewals, releases and the probe.
 */
export const sidecarConnections = 2 * 3 + popSlots + 3

export class SidecarDbPool {
  readonly #breaker: CircuitBreaker
  readonly #pops: PopScheduler
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
      onRecovered: () => this.#pops.recheckAll(),
      random,
    })
    this.#writes = new WriteOperations({
      connections: executor,
      coordinator,
      timeoutMs,
      random,
      nowMs: () => performance.now(),
      onUnavailable,
      observer,
    })
    this.#pops = new PopScheduler({
      executor,
      coordinator,
      timeoutMs,
      random,
      waitersMax: options.waitersMax ?? sidecarDefaults.waitersMax,
      durable: options.durableLeases ?? sidecarDefaults.durableLeases,
      bytesMax: options.popBytesMax ?? sidecarDefaults.popBytesMax,
      takenAfterMs: options.takenAfterMs ?? sidecarDefaults.takenAfterMs,
      nowMs: () => performance.now(),
      onBlocked: (untilMs) => coordinator.notifyBlocked(untilMs),
      // If the release fails, the lease ends when it expires.
      release: (leaseId) => void this.#writes.release(leaseId).catch(() => {}),
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
    this.#pops.onGrant(grant)
  }

  /** The primary has registered this worker. Waiters that arrived earlier are reported again. */
  registered(): void {
    this.#pops.registered()
  }

  stats(): SidecarStats {
    return {
      waiting: this.#pops.waiting,
      waitingByQueue: this.#pops.waitingByQueue(),
      databaseUp: this.#breaker.up,
      queries: { ...this.#queries },
      batches: { ...this.#writes.batches(), pop: this.#pops.batches() },
      overdue: this.#writes.overdue(),
    }
  }

  /** Answers waiting pops with no messages, in slices, and finishes the calls in flight. */
  async drain(): Promise<void> {
    await this.#pops.drain()
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
        return this.#writes.renew(operation.leaseId, operation.durationMs)
      case 'RELEASE':
        this.#refuseWhileDown()
        return this.#writes.release(operation.leaseId)
      default:
        return operation satisfies never
    }
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
