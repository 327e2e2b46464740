// Everything that changes messages: pushes, acknowledgements, transactions, leases. Each kind has its own slots, so
// that acknowledgements are never starved by pushes, and joins what arrives while they are busy into one SQL call. What
// meets a lock that another session holds leaves these slots for the separate line.

import { provesNotCommitted } from '@rouse/database'
import type { WakeHint } from '@rouse/protocol'
import type { Connections, Executor } from '@rouse/storage'
import {
  type AckItem,
  ack,
  extend,
  type PushedItem,
  type PushItem,
  push,
  release,
  type TransactionRequest,
  type TransactionResult,
  transaction,
} from '@rouse/storage'
import type { AckOutcome } from '../operation.ts'
import type { Semaphore } from '../pops/slots.ts'
import type { SidecarError } from '../sidecar-error.ts'
import type { PendingWrite } from './pending-write.ts'
import { runIsolated } from './retry-split.ts'
import { lockTimeoutsMs, SeparateLine, type WriteTarget } from './separate-line.ts'
import { WriteLine } from './write-queue.ts'

export interface WriteDeskOptions {
  readonly connections: Connections
  /** A write is answered within this time. */
  readonly timeoutMs: number
  readonly onPushed: (woken: readonly WakeHint[]) => void
  readonly onFreed: (woken: readonly WakeHint[]) => void
  readonly onUnavailable: (error: SidecarError) => void
  /** For writes to queues with a locked partition, of all kinds together. */
  readonly separateSlots: Semaphore
  readonly nowMs: () => number
  readonly random: () => number
}

type PushWrite = PendingWrite<{ items: readonly PushItem[]; bytes: number }, PushedItem[]>
type AckWrite = PendingWrite<{ items: readonly AckItem[]; group: string | undefined }, AckOutcome[]>
type TransactionWrite = PendingWrite<TransactionRequest, TransactionResult>
type RenewWrite = PendingWrite<{ leaseId: string; durationMs: number }, number | null>
type ReleaseWrite = PendingWrite<string, boolean>
type LineOf<W> = W extends PendingWrite<infer I, infer O> ? WriteLine<I, O> : never

const limits = {
  slots: 2,
  patienceMs: 20,
  pendingMax: 50_000,
  countMax: 1_000,
  bytesMax: 4 * 1024 * 1024,
}

interface WriteKind<I, O> {
  readonly slots?: number
  readonly patienceMs?: number
  readonly countMax?: number
  readonly weigh: (write: PendingWrite<I, O>) => { readonly count: number; readonly bytes: number }
  readonly joins?: (first: PendingWrite<I, O>, other: PendingWrite<I, O>) => boolean
  /** The rows that a write locks. Asked only after a call met a lock. */
  readonly targetsOf: (input: I) => readonly WriteTarget[]
  /** One SQL call that settles all writes. Pushes are told how long to wait for a lock, the others' functions know it. */
  readonly call: (
    writes: readonly PendingWrite<I, O>[],
    executor: Executor,
    lockTimeoutMs: number,
  ) => Promise<void>
}

const one = (): { count: number; bytes: number } => ({ count: 1, bytes: 0 })

export class WriteDesk {
  readonly #options: WriteDeskOptions
  readonly #pushes: LineOf<PushWrite>
  readonly #acks: LineOf<AckWrite>
  readonly #transactions: LineOf<TransactionWrite>
  readonly #renewals: LineOf<RenewWrite>
  readonly #releases: LineOf<ReleaseWrite>

  constructor(options: WriteDeskOptions) {
    this.#options = options
    this.#pushes = this.#line({
      weigh: ({ input }) => ({ count: input.items.length, bytes: input.bytes }),
      targetsOf: ({ items }) => items.map(targetOfPush),
      call: (writes, executor, lockTimeoutMs) => this.#push(writes, executor, lockTimeoutMs),
    })
    this.#acks = this.#line({
      weigh: ({ input }) => ({ count: input.items.length, bytes: 0 }),
      joins: (first, other) => first.input.group === other.input.group,
      targetsOf: ({ items }) => items.map(targetOfAck),
      call: (writes, executor) => this.#ack(writes, executor),
    })
    this.#transactions = this.#line({
      patienceMs: 0,
      countMax: 1, // never joined: what one of them locks must not wait for another
      weigh: one,
      targetsOf: targetsOfTransaction,
      call: (writes, executor) => this.#transact(writes, executor),
    })
    this.#renewals = this.#line({
      slots: 1,
      weigh: one,
      targetsOf: ({ leaseId }) => [targetOfLease(leaseId)],
      call: (writes, executor) => this.#renew(writes, executor),
    })
    this.#releases = this.#line({
      slots: 1,
      weigh: one,
      targetsOf: (leaseId) => [targetOfLease(leaseId)],
      call: (writes, executor) => this.#release(writes, executor),
    })
  }

  push(items: readonly PushItem[], bytes: number): Promise<PushedItem[]> {
    return this.#pushes.submit({ items, bytes })
  }

  ack(items: readonly AckItem[], group: string | undefined): Promise<AckOutcome[]> {
    return this.#acks.submit({ items, group })
  }

  transact(request: TransactionRequest): Promise<TransactionResult> {
    return this.#transactions.submit(request)
  }

  renew(leaseId: string, durationMs: number): Promise<number | null> {
    return this.#renewals.submit({ leaseId, durationMs })
  }

  release(leaseId: string): Promise<boolean> {
    return this.#releases.submit(leaseId)
  }

  /** Calls and requests so far, by kind. */
  batches(): Record<string, { calls: number; requests: number }> {
    const kinds = {
      push: this.#pushes,
      ack: this.#acks,
      transaction: this.#transactions,
      renew: this.#renewals,
      release: this.#releases,
    }
    return Object.fromEntries(
      Object.entries(kinds).map(([kind, { calls, requests }]) => [kind, { calls, requests }]),
    )
  }

  async idle(): Promise<void> {
    await Promise.all([
      this.#pushes.idle(),
      this.#acks.idle(),
      this.#transactions.idle(),
      this.#renewals.idle(),
      this.#releases.idle(),
    ])
  }

  #line<I, O>(kind: WriteKind<I, O>): WriteLine<I, O> {
    const { timeoutMs, separateSlots, nowMs } = this.#options
    const shared = { ...limits, ...kind, timeoutMs }
    const separate = new SeparateLine<I, O>({
      ...shared,
      slots: separateSlots,
      nowMs,
      async call(writes, lockTimeoutMs) {
        const startedAtMs = nowMs()
        for (;;) {
          let isLocked = false
          await run(writes, lockTimeoutMs, () => {
            isLocked = true
          })
          if (!isLocked) return true
          // Where a function waits for less than this, it is asked again.
          if (nowMs() - startedAtMs >= lockTimeoutMs) return false
        }
      },
    })
    const run = (
      writes: readonly PendingWrite<I, O>[],
      lockTimeoutMs: number,
      onLocked: (writes: readonly PendingWrite<I, O>[]) => void,
    ): Promise<void> =>
      runIsolated(writes, {
        call: (some) =>
          this.#send(some, (sent, executor) => kind.call(sent, executor, lockTimeoutMs)),
        reject: (write, error) => write.reject(error),
        onLocked,
        onUnavailable: this.#options.onUnavailable,
        writes: true,
        random: this.#options.random,
      })
    return new WriteLine({
      ...shared,
      separate,
      run: (batch) => run(batch, lockTimeoutsMs.shared, (writes) => separate.moveIn(writes)),
    })
  }

  /** Only once there is a connection is it known who still waits. */
  #send<I, O>(
    writes: readonly PendingWrite<I, O>[],
    call: (writes: readonly PendingWrite<I, O>[], executor: Executor) => Promise<void>,
  ): Promise<void> {
    return this.#options.connections.use(async (executor) => {
      const sent = writes.filter((write) => write.send())
      if (sent.length === 0) return
      try {
        await call(sent, executor)
      } catch (error) {
        if (provesNotCommitted(error)) for (const write of sent) write.undone()
        throw error
      }
    })
  }

  async #push(
    writes: readonly PushWrite[],
    executor: Executor,
    lockTimeoutMs: number,
  ): Promise<void> {
    const items = writes.flatMap(({ input }) => input.items)
    const result = await push(executor, items, { lockTimeoutMs })
    this.#options.onPushed(result.woken)
    let at = 0
    for (const write of writes) {
      const { length } = write.input.items
      write.resolve(result.items.slice(at, at + length))
      at += length
    }
  }

  async #ack(writes: readonly AckWrite[], executor: Executor): Promise<void> {
    const items = writes.flatMap(({ input }) => input.items)
    const result = await ack(executor, items, writes[0]?.input.group)
    this.#options.onFreed(result.woken)
    const rejected = new Set(result.rejected)
    const dead = new Set(result.deadLettered)
    let at = 0
    for (const write of writes) {
      const start = at
      at += write.input.items.length
      write.resolve(
        write.input.items.map((_, i) => ({
          accepted: !rejected.has(start + i),
          deadLettered: dead.has(start + i),
        })),
      )
    }
  }

  async #transact([write]: readonly TransactionWrite[], executor: Executor): Promise<void> {
    if (write === undefined) return
    const result = await transaction(executor, write.input)
    this.#options.onPushed(result.woken)
    write.resolve(result)
  }

  async #renew(writes: readonly RenewWrite[], executor: Executor): Promise<void> {
    const expiries = await extend(
      executor,
      writes.map(({ input }) => input),
    )
    writes.forEach((write, i) => write.resolve(expiries[i] ?? null))
  }

  async #release(writes: readonly ReleaseWrite[], executor: Executor): Promise<void> {
    const ids = writes.map(({ input }) => input)
    const { released, woken } = await release(executor, ids)
    this.#options.onFreed(woken)
    for (const write of writes) write.resolve(released.has(write.input))
  }
}

function targetOfPush({ queue, partition }: PushItem): WriteTarget {
  return { queue, name: partition }
}

/** The queue of a lease is not known here: its partition stands for it, or the lease itself. */
function targetOfAck({ leaseId, message }: AckItem): WriteTarget {
  return message === undefined ? targetOfLease(leaseId) : targetOfLease(message.partitionId)
}

/** What is acknowledged counts to the queue that is pushed to: else no two transactions would wait together. */
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
