// All operations that change messages: pushes, acks, transactions, leases. Each kind has its own slots, so
// that pushes never starve acks.

import { provesNotCommitted } from '@rouse/database'
import type { WakeHint } from '@rouse/protocol'
import {
  type AckItem,
  ack,
  type CommittedTransaction,
  type Connections,
  type DirectPushResult,
  type Executor,
  type Extended,
  type Extension,
  type NewMessage,
  type ProgressReport,
  type PushedMessage,
  push,
  pushDirect,
  release,
  renew,
  reportProgress,
  type TransactionRequest,
  targetPartition,
  transaction,
} from '@rouse/storage'
import type { Coordinator } from '../coordinator.ts'
import type { SidecarObserver } from '../observer.ts'
import type { AckOutcome } from '../operation.ts'
import type { DirectDelivery } from '../pops/direct-delivery.ts'
import type { SidecarError } from '../sidecar-error.ts'
import { Semaphore } from '../slots.ts'
import { LockedTargets, lockTimeoutsMs, type WriteTarget } from './locked-targets.ts'
import { type PendingWrite, runShared, WriteQueue } from './write-queue.ts'

export interface WriteOperationsOptions {
  readonly connections: Connections
  /** A write is answered within this time. */
  readonly timeoutMs: number
  readonly coordinator: Pick<Coordinator, 'notifyMessageAvailable' | 'notifyPartitionFree'>
  readonly onUnavailable: (error: SidecarError) => void
  /** A waiter that may get the message of this push directly. */
  readonly reserve: (item: NewMessage) => DirectDelivery | undefined
  readonly nowMs: () => number
  readonly random: () => number
  readonly observer?: SidecarObserver | undefined
}

interface PushInput {
  readonly items: readonly NewMessage[]
}

interface AckInput {
  readonly items: readonly AckItem[]
  readonly group: string | undefined
}

type WriteQueueStats = Pick<WriteQueue<unknown, unknown>, 'calls' | 'requests' | 'overdue'>

const limits = {
  slots: 2,
  patienceMs: 20,
  pendingMax: 50_000,
  countMax: 1_000,
  bytesMax: 4 * 1024 * 1024,
}

/**
 * The maximum number of concurrent calls for writes that hit a row lock of another session. The limit applies
 * to all kinds of writes together.
 */
const lockedSlots = 4

interface WriteKind<I, O> {
  readonly slots?: number
  readonly patienceMs?: number
  readonly countMax?: number
  readonly joins?: (first: I, other: I) => boolean
  /** The rows that a write locks. Called only after a call hit a lock. */
  readonly targetsOf: (input: I) => readonly WriteTarget[]
  /** One SQL call for all inputs. Only push takes a lock timeout; the other functions have a fixed one. */
  readonly call: (inputs: readonly I[], executor: Executor, lockTimeoutMs: number) => Promise<O[]>
}

export class WriteOperations {
  readonly #options: WriteOperationsOptions
  readonly #lockedSlots = new Semaphore(lockedSlots, 1)
  readonly #pushes: WriteQueue<PushInput, PushedMessage[]>
  readonly #acks: WriteQueue<AckInput, AckOutcome[]>
  readonly #transactions: WriteQueue<TransactionRequest, CommittedTransaction>
  readonly #renewals: WriteQueue<Extension, Extended | null>
  readonly #reports: WriteQueue<ProgressReport, boolean>
  readonly #releases: WriteQueue<string, boolean>

  constructor(options: WriteOperationsOptions) {
    this.#options = options
    this.#pushes = this.#queue({
      targetsOf: ({ items }) => items.map(targetOfPush),
      call: (inputs, executor, lockTimeoutMs) => this.#push(inputs, executor, lockTimeoutMs),
    })
    this.#acks = this.#queue({
      joins: (first, other) => first.group === other.group,
      targetsOf: ({ items }) => items.map(targetOfAck),
      call: (inputs, executor) => this.#ack(inputs, executor),
    })
    this.#transactions = this.#queue({
      patienceMs: 0,
      countMax: 1, // never shared: one transaction must not wait for the locks of another
      targetsOf: targetsOfTransaction,
      call: (inputs, executor) => this.#transact(inputs, executor),
    })
    this.#renewals = this.#queue({
      slots: 1,
      targetsOf: ({ leaseId }) => [targetOfLease(leaseId)],
      call: (inputs, executor) => this.#renew(inputs, executor),
    })
    this.#reports = this.#queue({
      slots: 1,
      targetsOf: ({ partitionId }) => [targetOfLease(partitionId)],
      call: (inputs, executor) => reportProgress(executor, inputs),
    })
    this.#releases = this.#queue({
      slots: 1,
      targetsOf: (leaseId) => [targetOfLease(leaseId)],
      call: (inputs, executor) => this.#release(inputs, executor),
    })
  }

  push(items: readonly NewMessage[], bytes: number): Promise<PushedMessage[]> {
    return this.#pushes.submit({ items }, { count: items.length, bytes })
  }

  ack(items: readonly AckItem[], group: string | undefined): Promise<AckOutcome[]> {
    let bytes = 0
    for (const { result } of items) bytes += result?.length ?? 0
    return this.#acks.submit({ items, group }, { count: items.length, bytes })
  }

  transact(request: TransactionRequest): Promise<CommittedTransaction> {
    return this.#transactions.submit(request)
  }

  renew({ leaseId, durationMs, exact }: Extension): Promise<Extended | null> {
    return this.#renewals.submit({ leaseId, durationMs, exact })
  }

  progress(report: ProgressReport): Promise<boolean> {
    return this.#reports.submit(report, { count: 1, bytes: report.progress.length })
  }

  release(leaseId: string): Promise<boolean> {
    return this.#releases.submit(leaseId)
  }

  /** Calls and requests since the start, by kind. */
  batches(): Record<string, { calls: number; requests: number }> {
    return Object.fromEntries(
      this.#kinds().map(([kind, { calls, requests }]) => [kind, { calls, requests }]),
    )
  }

  /** Calls that have exceeded their deadline, by kind. */
  overdue(): Record<string, number> {
    return Object.fromEntries(this.#kinds().map(([kind, { overdue }]) => [kind, overdue]))
  }

  #kinds(): [kind: string, queue: WriteQueueStats][] {
    return Object.entries({
      push: this.#pushes,
      ack: this.#acks,
      transaction: this.#transactions,
      renew: this.#renewals,
      progress: this.#reports,
      release: this.#releases,
    })
  }

  async idle(): Promise<void> {
    // A push may have leased its message to a waiter that has left, and then releases it.
    await this.#pushes.idle()
    await Promise.all([
      this.#acks.idle(),
      this.#transactions.idle(),
      this.#renewals.idle(),
      this.#reports.idle(),
      this.#releases.idle(),
    ])
  }

  #queue<I, O>(kind: WriteKind<I, O>): WriteQueue<I, O> {
    const { connections, timeoutMs, nowMs, onUnavailable, random } = this.#options
    const shared = { ...limits, ...kind, timeoutMs }
    const run = (
      writes: readonly PendingWrite<I, O>[],
      lockTimeoutMs: number,
      onLocked: (writes: readonly PendingWrite<I, O>[]) => void,
    ): Promise<void> => {
      const call = (inputs: readonly I[], executor: Executor): Promise<O[]> =>
        kind.call(inputs, executor, lockTimeoutMs)
      return runShared(writes, { connections, call, onLocked, onUnavailable, random })
    }
    const locked = new LockedTargets<I, O>({
      ...shared,
      slots: this.#lockedSlots,
      nowMs,
      async call(writes, lockTimeoutMs) {
        const startedAtMs = nowMs()
        for (;;) {
          let isLocked = false
          await run(writes, lockTimeoutMs, () => {
            isLocked = true
          })
          if (!isLocked) return true
          // The SQL function may use a shorter lock timeout than this call. It is then called again.
          if (nowMs() - startedAtMs >= lockTimeoutMs) return false
        }
      },
    })
    return new WriteQueue({
      ...shared,
      locked,
      run: (batch) => run(batch, lockTimeoutsMs.shared, (writes) => locked.moveIn(writes)),
    })
  }

  async #push(
    inputs: readonly PushInput[],
    executor: Executor,
    lockTimeoutMs: number,
  ): Promise<PushedMessage[][]> {
    const items = inputs.flatMap((input) => input.items)
    const reserved = this.#reserveFor(items, lockTimeoutMs)
    let stored: DirectPushResult | undefined
    try {
      const pushed = await store(executor, items, reserved, lockTimeoutMs)
      stored = pushed
      this.#options.coordinator.notifyMessageAvailable(pushed.woken)
      this.#options.observer?.pushed(items, pushed.items)
      return splitResults(inputs, pushed.items)
    } catch (error) {
      if (!provesNotCommitted(error)) reserved?.outcomeUnknown()
      throw error
    } finally {
      reserved?.deliver(stored)
    }
  }

  /** The waiter that gets a single message. A push that waits for locks keeps no waiter from other messages. */
  #reserveFor(items: readonly NewMessage[], lockTimeoutMs: number): DirectDelivery | undefined {
    const [item] = items
    const isAlone = item !== undefined && items.length === 1
    if (!isAlone || lockTimeoutMs !== lockTimeoutsMs.shared) return undefined
    return this.#options.reserve(item)
  }

  async #ack(inputs: readonly AckInput[], executor: Executor): Promise<AckOutcome[][]> {
    const items = inputs.flatMap((input) => input.items)
    const result = await ack(executor, items, inputs[0]?.group)
    this.#options.coordinator.notifyPartitionFree(result.woken.filter(mayDeliver))
    const rejected = new Set(result.rejected)
    const dead = new Set(result.deadLettered)
    const outcomes = items.map((_, i) => ({
      accepted: !rejected.has(i),
      deadLettered: dead.has(i),
    }))
    this.#options.observer?.acked(items, outcomes)
    return splitResults(inputs, outcomes)
  }

  async #transact(
    [request]: readonly TransactionRequest[],
    executor: Executor,
  ): Promise<CommittedTransaction[]> {
    if (request === undefined) return []
    const result = await transaction(executor, request)
    this.#options.coordinator.notifyMessageAvailable(result.woken.filter(mayDeliver))
    this.#observeTransaction(request, result)
    return [result]
  }

  #observeTransaction({ acks, pushes }: TransactionRequest, result: CommittedTransaction): void {
    const { observer } = this.#options
    if (observer === undefined) return
    const dead = new Set(result.deadLettered)
    const outcomes = acks.map((_, i) => ({ accepted: true, deadLettered: dead.has(i) }))
    observer.acked(acks, outcomes)
    observer.pushed(pushes, result.pushed)
  }

  #renew(inputs: readonly Extension[], executor: Executor): Promise<(Extended | null)[]> {
    return renew(executor, inputs)
  }

  async #release(leaseIds: readonly string[], executor: Executor): Promise<boolean[]> {
    const { released, woken } = await release(executor, leaseIds)
    this.#options.coordinator.notifyPartitionFree(woken)
    this.#options.observer?.released(released.size)
    return leaseIds.map((leaseId) => released.has(leaseId))
  }
}

function store(
  executor: Executor,
  items: readonly NewMessage[],
  reserved: DirectDelivery | undefined,
  lockTimeoutMs: number,
): Promise<DirectPushResult> {
  const [first] = items
  return reserved === undefined || first === undefined
    ? push(executor, items, { lockTimeoutMs })
    : pushDirect(executor, first, reserved.demand, lockTimeoutMs)
}

/**
 * Whether a waiter may get something from a freed lane. If the lane has nothing left, no waiter is woken: a
 * push that comes later waits for the ack that counted, and then announces itself.
 */
function mayDeliver({ partition, count }: WakeHint): boolean {
  return count !== 0 || partition === null
}

/** Splits the results of a call into the part of each input. */
function splitResults<T>(
  inputs: readonly { readonly items: readonly unknown[] }[],
  all: T[],
): T[][] {
  let at = 0
  return inputs.map(({ items }) => {
    const start = at
    at += items.length
    return all.slice(start, at)
  })
}

function targetOfPush(item: NewMessage): WriteTarget {
  return { queue: item.queue, name: targetPartition(item) ?? '' }
}

/**
 * The queue of a lease is unknown here, so its partition takes the place of the queue. If the item names no
 * message, the lease does.
 */
function targetOfAck({ leaseId, message }: AckItem): WriteTarget {
  return message === undefined ? targetOfLease(leaseId) : targetOfLease(message.partitionId)
}

/**
 * Acks count as writes to the first queue of the pushes. Otherwise no two transactions would share a group.
 */
function targetsOfTransaction({ acks, pushes }: TransactionRequest): WriteTarget[] {
  const acked = acks.map(targetOfAck)
  const [first] = pushes
  if (first === undefined) return acked
  return [
    ...pushes.map(targetOfPush),
    ...acked.map((target) => ({ ...target, queue: first.queue })),
  ]
}

function targetOfLease(name: string): WriteTarget {
  return { queue: `lease ${name}`, name }
}
