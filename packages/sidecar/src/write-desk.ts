// Everything that changes messages: pushes, acknowledgements, transactions, leases. Each kind has its own slots, so
// that acknowledgements are never starved by pushes, and joins what arrives while they are busy into one SQL call.
import { Batcher } from './batcher.ts'
import { runIsolated } from './isolation.ts'
import type { AckOutcome } from './operation.ts'
import { SidecarError } from './sidecar-error.ts'
import { type AckItem, ack } from './statements/ack.ts'
import type { Executor } from './statements/executor.ts'
import { extend, release } from './statements/lease.ts'
import { type PushedItem, type PushItem, push } from './statements/push.ts'
import {
  type TransactionRequest,
  type TransactionResult,
  transaction,
} from './statements/transaction.ts'
import type { Woken } from './statements/woken.ts'

/** A promise that somebody waits for, and what it is about. */
interface Request<I, O> {
  readonly input: I
  readonly resolve: (output: O) => void
  readonly reject: (error: SidecarError) => void
}

export interface WriteDeskOptions {
  readonly executor: Executor
  readonly onPushed: (woken: readonly Woken[]) => void
  readonly onFreed: (woken: readonly Woken[]) => void
  readonly onUnavailable: (error: SidecarError) => void
  readonly random: () => number
}

type PushRequest = Request<{ items: readonly PushItem[]; bytes: number }, PushedItem[]>
type AckRequest = Request<{ items: readonly AckItem[]; group: string | undefined }, AckOutcome[]>
type TransactionCall = Request<TransactionRequest, TransactionResult>
type RenewRequest = Request<{ leaseId: string; durationMs: number }, number | null>
type ReleaseRequest = Request<string, boolean>

const pushLockTimeoutMs = 1_000
const limits = {
  slots: 2,
  patienceMs: 20,
  pendingMax: 50_000,
  countMax: 1_000,
  bytesMax: 4 * 1024 * 1024,
}
const one = (): { count: number; bytes: number } => ({ count: 1, bytes: 0 })

export class WriteDesk {
  readonly #options: WriteDeskOptions
  readonly #pushes: Batcher<PushRequest>
  readonly #acks: Batcher<AckRequest>
  readonly #transactions: Batcher<TransactionCall>
  readonly #renewals: Batcher<RenewRequest>
  readonly #releases: Batcher<ReleaseRequest>

  constructor(options: WriteDeskOptions) {
    this.#options = options
    this.#pushes = new Batcher({
      ...limits,
      weigh: ({ input }) => ({ count: input.items.length, bytes: input.bytes }),
      run: (batch) => this.#run(batch, (requests) => this.#push(requests)),
    })
    this.#acks = new Batcher({
      ...limits,
      weigh: ({ input }) => ({ count: input.items.length, bytes: 0 }),
      joins: (first, other) => first.input.group === other.input.group,
      run: (batch) => this.#run(batch, (requests) => this.#ack(requests)),
    })
    this.#transactions = new Batcher({
      ...limits,
      patienceMs: 0,
      countMax: 1, // never joined: what one of them locks must not wait for another
      weigh: one,
      run: (batch) => this.#run(batch, (requests) => this.#transact(requests)),
    })
    this.#renewals = new Batcher({
      ...limits,
      slots: 1,
      weigh: one,
      run: (batch) => this.#run(batch, (requests) => this.#renew(requests)),
    })
    this.#releases = new Batcher({
      ...limits,
      slots: 1,
      weigh: one,
      run: (batch) => this.#run(batch, (requests) => this.#release(requests)),
    })
  }

  push(items: readonly PushItem[], bytes: number): Promise<PushedItem[]> {
    return submit(this.#pushes, { items, bytes })
  }

  ack(items: readonly AckItem[], group: string | undefined): Promise<AckOutcome[]> {
    return submit(this.#acks, { items, group })
  }

  transact(request: TransactionRequest): Promise<TransactionResult> {
    return submit(this.#transactions, request)
  }

  renew(leaseId: string, durationMs: number): Promise<number | null> {
    return submit(this.#renewals, { leaseId, durationMs })
  }

  release(leaseId: string): Promise<boolean> {
    return submit(this.#releases, leaseId)
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

  async #run<I, O>(
    batch: readonly Request<I, O>[],
    call: (requests: readonly Request<I, O>[]) => Promise<void>,
  ): Promise<void> {
    await runIsolated(batch, {
      call,
      reject: (request, error) => request.reject(error),
      onUnavailable: this.#options.onUnavailable,
      writes: true,
      random: this.#options.random,
    })
  }

  async #push(requests: readonly PushRequest[]): Promise<void> {
    const items = requests.flatMap(({ input }) => input.items)
    const result = await push(this.#options.executor, items, { lockTimeoutMs: pushLockTimeoutMs })
    this.#options.onPushed(result.woken)
    let at = 0
    for (const { input, resolve } of requests) {
      resolve(result.items.slice(at, at + input.items.length))
      at += input.items.length
    }
  }

  async #ack(requests: readonly AckRequest[]): Promise<void> {
    const items = requests.flatMap(({ input }) => input.items)
    const result = await ack(this.#options.executor, items, requests[0]?.input.group)
    this.#options.onFreed(result.woken)
    const rejected = new Set(result.rejected)
    const dead = new Set(result.deadLettered)
    let at = 0
    for (const { input, resolve } of requests) {
      const start = at
      at += input.items.length
      resolve(
        input.items.map((_, i) => ({
          accepted: !rejected.has(start + i),
          deadLettered: dead.has(start + i),
        })),
      )
    }
  }

  async #transact([request]: readonly TransactionCall[]): Promise<void> {
    if (request === undefined) return
    const result = await transaction(this.#options.executor, request.input)
    this.#options.onPushed(result.woken)
    request.resolve(result)
  }

  async #renew(requests: readonly RenewRequest[]): Promise<void> {
    const expiries = await extend(
      this.#options.executor,
      requests.map(({ input }) => input),
    )
    requests.forEach(({ resolve }, i) => resolve(expiries[i] ?? null))
  }

  async #release(requests: readonly ReleaseRequest[]): Promise<void> {
    const ids = requests.map(({ input }) => input)
    const { released, woken } = await release(this.#options.executor, ids)
    this.#options.onFreed(woken)
    for (const { input, resolve } of requests) resolve(released.has(input))
  }
}

function submit<I, O>(batcher: Batcher<Request<I, O>>, input: I): Promise<O> {
  return new Promise<O>((resolve, reject) => {
    if (!batcher.add({ input, resolve, reject })) {
      reject(new SidecarError('overloaded', 'too many requests wait for PostgreSQL'))
    }
  })
}
