// A queue for writes of one kind, with a few slots.
//
// A write that finds no call in flight is sent at once, alone. Writes that arrive during that call are sent
// together when it ends, so an idle worker adds no delay and a busy one makes large calls. The other slots
// take writes that do not fit into one call, and keep a stuck call from delaying unrelated writes.
//
// A write is answered by its deadline:
//
//   waiting    in the queue, or between two tries. At its deadline it is refused, and never sent.
//   sent       PostgreSQL has it. At its deadline its outcome is unknown: it may still commit.
//   answered   by its result, its failure or its deadline, whichever comes first.
//
// PostgreSQL itself sets no time limit: a commit whose synchronous standby is lost hangs until the standby is
// back. An overdue call keeps its slot and its connection. While all slots are overdue, new writes are
// refused at once.

import { provesNotCommitted } from '@rouse/database'
import type { Connections, Executor } from '@rouse/storage'
import { SidecarError } from '../sidecar-error.ts'
import type { LockedTargets } from './locked-targets.ts'
import { isolateFailure } from './retry-split.ts'

export interface WriteSize {
  readonly count: number
  readonly bytes: number
}

export interface WriteQueueOptions<I, O> {
  readonly slots: number
  /** The next slot opens when a write has waited this long. 0 opens it at once. */
  readonly patienceMs: number
  /** The maximum number of writes that wait; any further write is refused. */
  readonly pendingMax: number
  /** The maximum size of one call. */
  readonly countMax: number
  readonly bytesMax: number
  readonly timeoutMs: number
  /** Whether a write may share a call with the first of the batch. */
  readonly joins?: ((first: I, other: I) => boolean) | undefined
  /** Takes the writes to queues that have a locked partition. */
  readonly locked?: LockedTargets<I, O> | undefined
  /** Executes a batch and answers every write in it; never rejects. */
  readonly run: (batch: PendingWrite<I, O>[]) => Promise<void>
}

const oneWrite: WriteSize = { count: 1, bytes: 0 }

export class WriteQueue<I, O> {
  readonly #options: WriteQueueOptions<I, O>
  /** Oldest first. */
  readonly #pending = new Set<PendingWrite<I, O>>()
  #busy = 0
  /** Calls that have exceeded `timeoutMs`. */
  #overdue = 0
  /** A pending write did not fit into the last call, or may not share it. */
  #isLeftOver = false
  #patienceTimer: NodeJS.Timeout | undefined
  #idle: (() => void)[] = []
  calls = 0
  requests = 0

  constructor(options: WriteQueueOptions<I, O>) {
    this.#options = options
  }

  /** Calls that have exceeded their deadline. */
  get overdue(): number {
    return this.#overdue
  }

  submit(input: I, size: WriteSize = oneWrite): Promise<O> {
    return new Promise<O>((resolve, reject) => {
      const { slots, pendingMax, timeoutMs, locked } = this.#options
      const write = new PendingWrite(input, size, resolve, reject)
      if (this.#overdue >= slots) {
        write.reject(new SidecarError('database_unavailable', 'PostgreSQL does not confirm writes'))
      } else if (isInUse(locked) && locked.take(write)) {
        write.answerWithin(timeoutMs, () => {})
      } else if (this.#pending.size >= pendingMax) {
        write.reject(new SidecarError('overloaded', 'too many writes are waiting'))
      } else {
        this.#pending.add(write)
        this.#fire()
        write.answerWithin(timeoutMs, () => this.#remove(write))
      }
    })
  }

  async idle(): Promise<void> {
    if (this.#busy > 0 || this.#pending.size > 0) {
      await new Promise<void>((resolve) => this.#idle.push(resolve))
    }
    // This comes last, because a call that hits a lock moves its writes to `locked` before it ends.
    await this.#options.locked?.idle()
  }

  #fire(): void {
    while (this.#mayBegin()) this.#begin()
    if (this.#pending.size === 0 || this.#busy >= this.#options.slots) return
    this.#patienceTimer ??= setTimeout(() => {
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
    this.#stopTimer()
    void this.#run(batch).finally(() => {
      this.#busy -= 1
      this.#fire()
      this.#resolveIdle()
    })
  }

  /** The oldest writes that fit one call. A write above the limit is sent alone. */
  #take(): PendingWrite<I, O>[] {
    const { countMax, bytesMax, joins } = this.#options
    const batch: PendingWrite<I, O>[] = []
    let count = 0
    let bytes = 0
    for (const write of this.#pending) {
      const { input, size } = write
      const first = batch[0]
      if (first !== undefined) {
        if (count + size.count > countMax || bytes + size.bytes > bytesMax) break
        if (joins !== undefined && !joins(first.input, input)) continue
      }
      batch.push(write)
      this.#pending.delete(write)
      count += size.count
      bytes += size.bytes
    }
    this.#isLeftOver = this.#pending.size > 0
    return batch
  }

  async #run(taken: PendingWrite<I, O>[]): Promise<void> {
    const { locked, run, timeoutMs } = this.#options
    // The queue of a write may have become locked while the write waited.
    const batch = isInUse(locked) ? taken.filter((one) => !locked.take(one)) : taken
    if (batch.length === 0) return
    let isOverdue = false
    const timer = setTimeout(() => {
      isOverdue = true
      this.#overdue += 1
    }, timeoutMs)
    try {
      await run(batch)
    } finally {
      clearTimeout(timer)
      if (isOverdue) this.#overdue -= 1
    }
  }

  #remove(write: PendingWrite<I, O>): void {
    this.#pending.delete(write)
    if (this.#pending.size > 0) return
    this.#stopTimer()
    this.#resolveIdle()
  }

  #stopTimer(): void {
    clearTimeout(this.#patienceTimer)
    this.#patienceTimer = undefined
  }

  #resolveIdle(): void {
    if (this.#busy > 0 || this.#pending.size > 0) return
    for (const resolve of this.#idle.splice(0)) resolve()
  }
}

function isInUse<I, O>(locked: LockedTargets<I, O> | undefined): locked is LockedTargets<I, O> {
  return locked !== undefined && locked.queues.size > 0
}

/** One write and its promise. The states are described at the head of this file. */
export class PendingWrite<I, O> {
  readonly input: I
  readonly size: WriteSize
  /** The error code if the write is still waiting at its deadline. */
  lateCode: 'database_unavailable' | 'partition_locked' = 'database_unavailable'
  readonly #resolve: (output: O) => void
  readonly #reject: (error: unknown) => void
  #state: 'waiting' | 'sent' | 'answered' = 'waiting'
  #deadline: NodeJS.Timeout | undefined

  constructor(
    input: I,
    size: WriteSize,
    resolve: (output: O) => void,
    reject: (error: unknown) => void,
  ) {
    this.input = input
    this.size = size
    this.#resolve = resolve
    this.#reject = reject
  }

  /** False: the write has been answered and must not be sent. */
  send(): boolean {
    if (this.#state === 'answered') return false
    this.#state = 'sent'
    return true
  }

  undone(): void {
    if (this.#state === 'sent') this.#state = 'waiting'
  }

  resolve(output: O): void {
    if (this.#answer()) this.#resolve(output)
  }

  reject(error: unknown): void {
    if (this.#answer()) this.#reject(error)
  }

  /** Calls `onLate` if the write is still unanswered at the deadline. */
  answerWithin(timeoutMs: number, onLate: () => void): void {
    if (this.#state === 'answered') return
    // When the process resumes after a pause, timers run before sockets are read. With setImmediate, a result
    // that has already arrived wins over the deadline.
    this.#deadline = setTimeout(() => {
      setImmediate(() => {
        if (this.#state === 'answered') return
        this.reject(late(this.#state, this.lateCode, timeoutMs))
        onLate()
      })
    }, timeoutMs)
  }

  #answer(): boolean {
    if (this.#state === 'answered') return false
    this.#state = 'answered'
    clearTimeout(this.#deadline)
    return true
  }
}

function late(
  state: 'waiting' | 'sent',
  waitingCode: PendingWrite<unknown, unknown>['lateCode'],
  timeoutMs: number,
): SidecarError {
  return state === 'sent'
    ? new SidecarError('outcome_unknown', `no confirmation from PostgreSQL within ${timeoutMs} ms`)
    : new SidecarError(waitingCode, `the write was not executed within ${timeoutMs} ms`)
}

export interface SharedCallOptions<I, O> {
  readonly connections: Connections
  /** One SQL call for these inputs. Resolves to one output per input. */
  readonly call: (inputs: readonly I[], executor: Executor) => Promise<readonly O[]>
  /** A lock timed out and nothing was written. */
  readonly onLocked: (writes: readonly PendingWrite<I, O>[]) => void
  readonly onUnavailable: (error: SidecarError) => void
  readonly random: () => number
}

export async function runShared<I, O>(
  writes: readonly PendingWrite<I, O>[],
  options: SharedCallOptions<I, O>,
): Promise<void> {
  const { connections, onLocked, onUnavailable, random } = options
  // `send` filters the writes once a connection is free: they may pass their deadline while they wait for it.
  const call = (some: readonly PendingWrite<I, O>[]) =>
    connections.use((executor) => send(some, executor, options.call))
  try {
    await call(writes)
  } catch (error) {
    await isolateFailure(error, writes, {
      call,
      reject: (write, failure) => write.reject(failure),
      onLocked,
      onUnavailable,
      writes: true,
      random,
    })
  }
}

async function send<I, O>(
  writes: readonly PendingWrite<I, O>[],
  executor: Executor,
  call: SharedCallOptions<I, O>['call'],
): Promise<void> {
  const sent = writes.filter((write) => write.send())
  if (sent.length === 0) return
  try {
    const inputs = sent.map(({ input }) => input)
    const outputs = await call(inputs, executor)
    sent.forEach((write, i) => write.resolve(outputs[i] as O))
  } catch (error) {
    if (provesNotCommitted(error)) for (const write of sent) write.undone()
    throw error
  }
}
