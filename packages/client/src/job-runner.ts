// Runs handlers over the messages that wait, and hands on how each message ended.
import { type AckDesk, leaseLost } from './ack-desk.ts'
import { Backlog } from './backlog.ts'
import { nowMs, pause } from './clock.ts'
import type { AckOutcome } from './consumer-calls.ts'
import { ackOf, type Ending, failedBy, type Held, type HeldLease } from './held.ts'
import { Job } from './job.ts'
import type { LeaseKeeper } from './lease-keeper.ts'
import { Prefetch } from './prefetch.ts'
import { RouseError } from './rouse-error.ts'
import type { WorkSettings } from './work-options.ts'

export interface JobRunnerOptions {
  readonly settings: WorkSettings
  readonly handle: (job: Job) => unknown
  readonly desk: AckDesk
  readonly keeper: LeaseKeeper
  readonly transact: (
    acks: readonly ReturnType<typeof ackOf>[],
    items: readonly string[],
  ) => Promise<AckOutcome>
  /** Something ended, or there is room for more. */
  readonly onChange: () => void
}

/** What order a queue keeps. */
export interface QueueOrder {
  readonly ordered: boolean
  /** A failed message holds back those behind it. */
  readonly holds: boolean
}

/** Messages that wait here, at most, however many of them order forbids to be handled. */
const backlogMax = 2_000

export class JobRunner {
  readonly #options: JobRunnerOptions
  readonly #prefetch: Prefetch
  readonly #jobs = new Set<Job>()
  #backlog = new Backlog(true)
  #order: QueueOrder | undefined
  #stopped = false
  #whenIdle: (() => void)[] = []

  constructor(options: JobRunnerOptions) {
    this.#options = options
    const { prefetch, concurrency, batch } = options.settings
    this.#prefetch = new Prefetch(prefetch, concurrency * batch)
  }

  get knowsOrder(): boolean {
    return this.#order !== undefined
  }

  /** Once, before the first messages. */
  learn(order: QueueOrder): void {
    this.#order = order
    this.#backlog = new Backlog(order.ordered)
  }

  /** How many more messages there is use for. */
  get wanted(): number {
    const { concurrency, batch } = this.#options.settings
    if (this.#stopped || this.#backlog.size >= backlogMax) return 0
    const free = (concurrency - this.#jobs.size) * batch
    return Math.max(0, free + this.#prefetch.target - this.#backlog.runnable)
  }

  add(messages: readonly Held[]): void {
    this.#backlog.add(messages)
    this.#run()
  }

  /** From here on no handler begins. Answers what none has begun. */
  stop(): Held[] {
    this.#stopped = true
    return this.#backlog.remove(() => true)
  }

  /** Resolves when no handler runs, or after so long. */
  async idle(timeoutMs: number): Promise<void> {
    if (this.#jobs.size === 0) return
    const idle = new AbortController()
    this.#whenIdle.push(() => idle.abort())
    await pause(timeoutMs, idle.signal)
  }

  abortAll(): void {
    for (const job of this.#jobs) job.abort(new RouseError('closed', 'the worker stops'))
  }

  /** Gives back what handlers hold that do not end. What they say later is not listened to. */
  giveUp(): void {
    for (const job of this.#jobs) this.#endOpen(job, { status: 'retry' })
  }

  /** False: all its messages have ended here, and the server was only quicker to say so. */
  lose(lease: HeldLease): boolean {
    const waiting = this.#backlog.remove((held) => held.lease === lease)
    const jobs = [...this.#jobs].filter((job) => job.open.some((held) => held.lease === lease))
    for (const job of jobs) job.abort(leaseLost())
    return waiting.length > 0 || jobs.length > 0
  }

  #run(): void {
    const { concurrency, batch } = this.#options.settings
    while (!this.#stopped && this.#jobs.size < concurrency) {
      const messages = this.#backlog.take(batch)
      if (messages.length === 0) return
      const job = new Job(messages, this)
      this.#jobs.add(job)
      void this.#carryOut(job)
    }
  }

  async #carryOut(job: Job): Promise<void> {
    try {
      await this.#options.handle(job)
      this.#endOpen(job, { status: 'completed' })
    } catch (error) {
      const givesBack = this.#stopped && job.isAborted
      if (!givesBack) {
        const message = job.messages[0]?.message
        this.#options.settings.onError(error, { kind: 'handler', message })
      }
      this.#endOpen(job, givesBack ? { status: 'retry' } : failedBy(error))
    }
    this.#jobs.delete(job)
    this.#backlog.done(job.messages)
    this.#prefetch.handled(job.messages.length, nowMs())
    if (this.#jobs.size === 0) for (const resolve of this.#whenIdle.splice(0)) resolve()
    this.#run()
    this.#options.onChange()
  }

  /** Nobody waits for these. */
  #endOpen(job: Job, ending: Ending): void {
    for (const held of job.messages) {
      if (held.settled) continue
      if (held.lease.lost) held.settled = true
      else this.#options.desk.add(held, ending)
      this.#holdBack(held, ending)
    }
  }

  /** As a handler wants it, which waits for the answer. */
  async end(messages: readonly Held[], ending: Ending): Promise<void> {
    const told = messages.map(
      (held) =>
        new Promise<void>((resolve, reject) => {
          if (held.lease.lost) return reject(leaseLost())
          this.#options.desk.add(held, ending, (error) => {
            if (error === undefined) resolve()
            else reject(error)
          })
          this.#holdBack(held, ending)
        }),
    )
    this.#options.onChange()
    await Promise.all(told)
  }

  /** Acknowledges and pushes, both or neither. */
  async transact(messages: readonly Held[], items: readonly string[]): Promise<void> {
    const { keeper } = this.#options
    if (messages.some(({ lease }) => lease.lost)) throw leaseLost()
    for (const held of messages) held.settled = true
    try {
      const acks = messages.map((held) => ackOf(held, { status: 'completed' }))
      const outcome = await this.#options.transact(acks, items)
      const isOurs = messages.every(({ lease }) => keeper.isOurs(lease))
      if (outcome === 'lost' || (outcome === 'unknown' && !isOurs)) throw leaseLost()
    } catch (error) {
      for (const held of messages) held.settled = false
      throw error
    }
    for (const held of messages) keeper.ended(held.lease)
  }

  /** In order means: nothing behind a message that comes again may be handled before it. */
  #holdBack({ message }: Held, { status }: Ending): void {
    if (this.#order?.holds !== true || (status !== 'failed' && status !== 'retry')) return
    const { partitionId } = message
    const behind = this.#backlog.remove((held) => held.message.partitionId === partitionId)
    for (const held of behind) this.#options.desk.add(held, { status: 'retry' })
  }
}
