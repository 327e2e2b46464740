// Runs handlers on waiting messages and reports how each message ended.

import { ackIn } from '#sql'
import { nowMs, pause } from '../clock.ts'
import { RouseError } from '../rouse-error.ts'
import type { SqlExecutor } from '../sql/executor.ts'
import { type AckSender, leaseLost } from './ack-sender.ts'
import { Backlog } from './backlog.ts'
import type { AckOutcome } from './consumer-calls.ts'
import { isDiscard, isRetryIn } from './ending-errors.ts'
import { type Ending, failedBy, type Held, type HeldLease, resultOf, rolledBack } from './held.ts'
import { Job, type JobEndings } from './job.ts'
import type { LeaseKeeper } from './lease-keeper.ts'
import type { Message } from './message.ts'
import { Prefetch } from './prefetch.ts'
import { holdsOthers, isOrdered, type QueueOrder, safeOrder } from './queue-order.ts'
import type { WorkSettings } from './work-options.ts'
import type { Events } from './worker-events.ts'

export interface JobRunnerOptions {
  readonly settings: WorkSettings
  readonly handle: (job: Job) => unknown
  readonly acks: AckSender
  readonly keeper: LeaseKeeper
  readonly events: Events
  readonly transact: (
    held: readonly Held[],
    ending: Ending,
    items: readonly string[],
  ) => Promise<AckOutcome>
  readonly progress: JobEndings['progress']
  readonly traced: JobEndings['traced']
  /** Whether the message is completed on the server. */
  readonly isCompleted: (message: Message) => Promise<boolean>
  /** Called when a message has ended or there is room for more. */
  readonly onChange: () => void
}

const completed: Ending = { status: 'completed' }

/** The maximum number of waiting messages, including those that ordering blocks. */
const backlogMax = 2_000

export class JobRunner implements JobEndings {
  readonly progress: JobEndings['progress']
  readonly traced: JobEndings['traced']
  readonly #options: JobRunnerOptions
  readonly #prefetch: Prefetch
  readonly #jobs = new Set<Job>()
  /** Messages of failed batches that are to be handled one at a time. */
  readonly #singly = new Set<Held>()
  /** Batches in progress: each runs one handler at a time. */
  #running = 0
  #backlog = new Backlog((message) => isOrdered(this.#order ?? safeOrder, message))
  #order: QueueOrder | undefined
  #keepsResults = false
  #stopped = false
  #whenIdle: (() => void)[] = []

  constructor(options: JobRunnerOptions) {
    this.#options = options
    this.progress = options.progress
    this.traced = options.traced
    const { prefetch, concurrency, batch } = options.settings
    this.#prefetch = new Prefetch(prefetch, concurrency * batch)
  }

  get knowsOrder(): boolean {
    return this.#order !== undefined
  }

  /** Called once, before the first messages. */
  learn(order: QueueOrder, keepsResults: boolean): void {
    this.#order = order
    this.#keepsResults = keepsResults
  }

  /** How many more messages to fetch. */
  get wanted(): number {
    const { concurrency, batch } = this.#options.settings
    if (this.#stopped || this.#backlog.size >= backlogMax) return 0
    const free = (concurrency - this.#running) * batch
    return Math.max(0, free + this.#prefetch.target - this.#backlog.runnable)
  }

  add(messages: readonly Held[]): void {
    this.#backlog.add(messages)
    this.#run()
  }

  /** Starts no more handlers. Returns the messages that have not been given to a handler. */
  stop(): Held[] {
    this.#stopped = true
    return [...this.#takeSingly(() => true), ...this.#backlog.remove(() => true)]
  }

  /** Resolves when no handler runs, or after the timeout. */
  async idle(timeoutMs: number): Promise<void> {
    if (this.#running === 0) return
    const idle = new AbortController()
    this.#whenIdle.push(() => idle.abort())
    await pause(timeoutMs, idle.signal)
  }

  abortAll(): void {
    for (const job of this.#jobs) job.abort(new RouseError('closed', 'the worker is stopping'))
  }

  /** Releases the messages of handlers that are still running. Results of these handlers are ignored. */
  giveUp(): void {
    for (const job of this.#jobs) this.#endOpen(job, { status: 'retry' })
  }

  /** Removes waiting messages of the lease and aborts its handlers. Returns false if there were none. */
  lose(lease: HeldLease): boolean {
    const isOfLease = (held: Held): boolean => held.lease === lease
    const waiting = [...this.#takeSingly(isOfLease), ...this.#backlog.remove(isOfLease)]
    const jobs = [...this.#jobs].filter((job) => job.open.some((held) => held.lease === lease))
    for (const job of jobs) job.abort(leaseLost())
    return waiting.length > 0 || jobs.length > 0
  }

  #run(): void {
    const { concurrency, batch } = this.#options.settings
    while (!this.#stopped && this.#running < concurrency) {
      const messages = this.#backlog.take(batch)
      if (messages.length === 0) return
      this.#running += 1
      this.#carryOut(messages)
    }
  }

  /**
   * Calls the handler once for all messages and, if that fails, once for each, so that only the bad message
   * is charged an attempt. A handler that returns, the usual case, costs no promise but its own.
   */
  #carryOut(messages: readonly Held[]): void {
    const job = this.#open(messages)
    this.#handle(job).then(
      (value) => {
        const checked = this.#returned(job, value)
        if (checked === undefined) this.#done(messages)
        else void checked.then(() => this.#done(messages))
      },
      async (error: unknown) => {
        if (await this.#threw(job, error)) await this.#carryOutSingly(messages)
        this.#done(messages)
      },
    )
  }

  /**
   * Handles each message alone, under the same lease. Releasing the messages would not help: the next
   * consumer would get them together again.
   */
  async #carryOutSingly(messages: readonly Held[]): Promise<void> {
    for (const held of messages) if (!held.settled) this.#singly.add(held)
    for (const held of messages) {
      if (!this.#singly.delete(held) || held.lease.lost) continue
      const job = this.#open([held])
      await this.#handle(job).then(
        (value) => this.#returned(job, value),
        (error: unknown) => this.#threw(job, error),
      )
    }
  }

  #open(messages: readonly Held[]): Job {
    const job = new Job(messages, this, nowMs())
    this.#jobs.add(job)
    this.#options.events.begun(job)
    return job
  }

  /** Resolves when the handler has ended; rejects if it threw, or returned what cannot be kept. */
  #handle(job: Job): Promise<unknown> {
    try {
      const returned = Promise.resolve(this.#options.handle(job))
      return this.#keepsResults ? returned.then(resultOf) : returned
    } catch (error) {
      return Promise.reject(error)
    }
  }

  #returned(job: Job, result: unknown): Promise<unknown> | undefined {
    this.#jobs.delete(job)
    this.#endOpen(job, this.#keepsResults ? { ...completed, result } : completed)
    this.#options.events.ended(job, nowMs())
    return this.#checkAckIn(job, completed)
  }

  /** Resolves to true if more than one open message may be the cause. They have then not ended. */
  async #threw(job: Job, error: unknown): Promise<boolean> {
    const { messages } = job
    const givesBack = this.#stopped && job.isAborted
    let ending: Ending = givesBack ? { status: 'retry' } : failedBy(error)
    if (!givesBack) {
      const message = messages.length === 1 ? messages[0]?.message : undefined
      if (!isRetryIn(error) && !isDiscard(error)) {
        this.#options.settings.onError(error, { kind: 'handler', message })
      }
      if (messages.length > 1) await this.#reopen(job)
    }
    this.#jobs.delete(job)
    if (ending.status !== 'retry' && job.open.length > 1) {
      if (!this.#stopped) return true
      ending = { status: 'retry' }
    }
    this.#endOpen(job, ending)
    this.#options.events.ended(job, nowMs(), error)
    // In a failed batch the bad message is unknown, so messages acknowledged by ackIn are not charged.
    const isBlamed = ending.status === 'retry' || messages.length === 1
    await this.#checkAckIn(job, isBlamed ? ending : { status: 'retry' })
    return false
  }

  /** The handler of these messages has ended, and the next one may start. */
  #done(messages: readonly Held[]): void {
    this.#running -= 1
    this.#backlog.done(messages)
    this.#prefetch.handled(messages.length, nowMs())
    if (this.#running === 0) for (const resolve of this.#whenIdle.splice(0)) resolve()
    this.#run()
    this.#options.onChange()
  }

  /**
   * After a failed batch: reopens the messages that ackIn acknowledged, unless the transaction may have been
   * committed.
   */
  async #reopen(job: Job): Promise<void> {
    const calls = new Set(job.messages.map(({ ackedIn }) => ackedIn))
    for (const call of calls) {
      const [first] = call?.messages ?? []
      if (call === undefined || first === undefined || first.lease.lost) continue
      const isCompleted = await this.#options.isCompleted(first.message).catch(() => undefined)
      if (isCompleted !== false) continue
      for (const held of call.messages) {
        held.ackedIn = undefined
        held.settled = false
      }
    }
  }

  /**
   * Acknowledges messages with this ending although ackIn has acknowledged them. If the transaction of ackIn
   * was committed, the server refuses the ending. If the transaction was rolled back, the messages are
   * redelivered now and not only when their lease expires. In an ordered queue the next message waits for the
   * server's answer; otherwise, and if there is nothing to check, the result is undefined.
   */
  #checkAckIn(job: Job, ending: Ending): Promise<unknown> | undefined {
    const { acks, onChange } = this.#options
    const hasReturned = ending.status === 'completed'
    const acked = job.messages.filter(({ ackedIn, lease }) => ackedIn !== undefined && !lease.lost)
    if (acked.length === 0) return undefined
    const checks = acked.map((held) => {
      if (!hasReturned) this.#holdBack(held, ending)
      return new Promise<void>((resolve) => {
        acks.check(held, hasReturned ? rolledBack : ending, (error) => {
          if (error?.code === rolledBack.errorCode) this.#holdBack(held, rolledBack)
          resolve()
        })
      })
    })
    onChange()
    const holds = acked.some(
      ({ message }) => this.#order !== undefined && holdsOthers(this.#order, message),
    )
    return holds ? Promise.all(checks) : undefined
  }

  /** Ends the messages that are still open. No caller waits for these acknowledgements. */
  #endOpen(job: Job, ending: Ending): void {
    for (const held of job.messages) {
      if (held.settled) continue
      held.ending = ending
      if (held.lease.lost) held.settled = true
      else this.#options.acks.add(held, ending)
      this.#holdBack(held, ending)
    }
  }

  /** Called by a handler, which waits for the answer. */
  async end(messages: readonly Held[], ending: Ending): Promise<void> {
    const settled = messages.map(
      (held) =>
        new Promise<void>((resolve, reject) => {
          if (held.lease.lost) return reject(leaseLost())
          held.ending = ending
          this.#options.acks.add(held, ending, (error) => {
            if (error === undefined) resolve()
            else reject(error)
          })
          this.#holdBack(held, ending)
        }),
    )
    this.#options.onChange()
    await Promise.all(settled)
  }

  /** Acknowledges and pushes atomically. */
  async transact(messages: readonly Held[], items: readonly string[], result: unknown) {
    const { keeper } = this.#options
    checkHeld(messages)
    for (const held of messages) held.settled = true
    const ending = { ...completed, result }
    try {
      const outcome = await this.#options.transact(messages, ending, items)
      const isOurs = messages.every(({ lease }) => keeper.isOurs(lease))
      if (outcome === 'lost' || (outcome === 'unknown' && !isOurs)) throw leaseLost()
    } catch (error) {
      for (const held of messages) held.settled = false
      throw error
    }
    for (const held of messages) {
      held.ending = ending
      keeper.ended(held.lease)
    }
  }

  /** Acknowledges in the handler's transaction. The result is known after the handler has ended. */
  async ackIn(messages: readonly Held[], executor: SqlExecutor): Promise<void> {
    if (messages.length === 0) return
    checkHeld(messages)
    for (const { lease } of messages) lease.hasAckIn = true
    const delivered = messages.map(({ message }) => message)
    await ackIn(executor, delivered)
    const ackedIn = { messages }
    for (const held of messages) {
      held.ackedIn = ackedIn
      held.ending = completed
      held.settled = true
    }
  }

  /**
   * In an ordered queue: releases the messages behind a message that is redelivered, to keep their order.
   */
  #holdBack({ message }: Held, { status }: Ending): void {
    if (status !== 'failed' && status !== 'retry') return
    if (this.#order === undefined || !holdsOthers(this.#order, message)) return
    const { partitionId } = message
    const isBehind = (held: Held): boolean => held.message.partitionId === partitionId
    const behind = [...this.#takeSingly(isBehind), ...this.#backlog.remove(isBehind)]
    for (const held of behind) this.#options.acks.add(held, { status: 'retry' })
  }

  #takeSingly(matches: (held: Held) => boolean): Held[] {
    const taken = [...this.#singly].filter(matches)
    for (const held of taken) this.#singly.delete(held)
    return taken
  }
}

function checkHeld(messages: readonly Held[]): void {
  if (messages.some(({ lease }) => lease.lost)) throw leaseLost()
}
