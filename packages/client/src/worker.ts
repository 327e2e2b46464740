// Fetches messages, has them handled, and tells the server how it went.
//
// While the queue is full, one request after the other acknowledges what is done and fetches more. When a fetch brings
// less than was asked for, the next one waits at the server, and acknowledgements go by themselves: they must not wait
// with it. So do those of a lease that is done as a whole: one word for all its messages. Handlers never wait for either.
import { AckDesk, leaseLost } from './ack-desk.ts'
import { backoffMs } from './backoff.ts'
import { afterThisTurn, nowMs, pause } from './clock.ts'
import { type ConsumerCalls, requestAcksMax } from './consumer-calls.ts'
import { type Duration, parseDuration } from './duration.ts'
import type { Held, HeldLease } from './held.ts'
import type { Job } from './job.ts'
import { JobRunner, type QueueOrder } from './job-runner.ts'
import { LeaseKeeper } from './lease-keeper.ts'
import type { Message } from './message.ts'
import { systemRandom } from './randomness.ts'
import type { WorkSettings } from './work-options.ts'

export interface WorkerOptions {
  // biome-ignore lint/suspicious/noExplicitAny: only the handler knows what is in a message
  readonly calls: ConsumerCalls<any>
  readonly settings: WorkSettings
  readonly handle: (job: Job) => unknown
  readonly onStopped: () => void
}

/** How long a fetch waits at the server before it comes back empty. */
const parkedMs = 30_000
const fetchMax = 1_000
const stopTimeoutDefault = '10s'
/** After its signal aborted, a handler has so long to end. */
const abortedMs = 1_000

export class Worker {
  readonly #calls: WorkerOptions['calls']
  readonly #settings: WorkSettings
  readonly #keeper: LeaseKeeper
  readonly #desk: AckDesk
  readonly #runner: JobRunner
  readonly #onStopped: () => void
  readonly #parked = new AbortController()
  #fetching: Promise<void> | undefined
  #failedFetches = 0
  /** The last fetch brought all that was asked for: there is more. */
  #hungry = false
  #talking = false
  #stopping: Promise<void> | undefined

  constructor({ calls, settings, handle, onStopped }: WorkerOptions) {
    this.#calls = calls
    this.#onStopped = onStopped
    this.#settings = settings
    const leaseMs = settings.leaseSeconds * 1_000
    this.#keeper = new LeaseKeeper({
      leaseMs,
      extend: (lease, limits) => calls.extend(lease.id, settings.leaseSeconds, limits),
      onLost: (lease) => {
        if (this.#runner.lose(lease)) settings.onError(leaseLost(), { kind: 'lease' })
        this.#talkSoon()
      },
      onError: (error) => settings.onError(error, { kind: 'lease' }),
    })
    this.#desk = new AckDesk({
      send: (acks) => calls.ack(acks, leaseMs),
      sendLease: (lease) => calls.ackLease(lease.id, leaseMs),
      isOurs: ({ lease }) => this.#keeper.isOurs(lease),
      onEnded: ({ lease, message }, error) => {
        this.#keeper.ended(lease)
        if (error !== undefined) settings.onError(error, { kind: 'ack', message })
      },
    })
    this.#runner = new JobRunner({
      settings,
      handle,
      desk: this.#desk,
      keeper: this.#keeper,
      transact: (acks, items) => calls.transact(acks, items),
      onChange: () => this.#talkSoon(),
    })
  }

  start(): void {
    this.#keeper.start()
    this.#talkSoon()
  }

  /**
   * Fetches no more, gives back what no handler has begun, and waits for the others. After the timeout their signals
   * abort, and what they still hold is given back too. Resolves when the server knows of everything. Safe twice.
   */
  stop({ timeout = stopTimeoutDefault }: { readonly timeout?: Duration } = {}): Promise<void> {
    this.#stopping ??= this.#stop(parseDuration(timeout, 'timeout'))
    return this.#stopping
  }

  async #stop(timeoutMs: number): Promise<void> {
    this.#parked.abort()
    const released = this.#giveBack(this.#runner.stop())
    await this.#fetching
    this.#talkSoon()
    await this.#runner.idle(timeoutMs)
    this.#runner.abortAll()
    await this.#runner.idle(abortedMs)
    this.#runner.giveUp()
    await this.#desk.flush(requestAcksMax)
    await released
    this.#keeper.stop()
    this.#onStopped()
  }

  /** What nobody has begun: whole leases at once, without a trace; parts of them one by one. */
  async #giveBack(waiting: readonly Held[]): Promise<void> {
    const leases = new Set(waiting.map(({ lease }) => lease))
    const released: Promise<void>[] = []
    for (const lease of leases) {
      const messages = waiting.filter((held) => held.lease === lease)
      if (messages.length === lease.open) {
        this.#keeper.drop(lease)
        released.push(this.#calls.release(lease.id))
      } else for (const held of messages) this.#desk.add(held, { status: 'retry' })
    }
    for (const result of await Promise.allSettled(released)) {
      if (result.status === 'rejected') this.#settings.onError(result.reason, { kind: 'lease' })
    }
  }

  /** Once all that ends in this turn has ended. */
  #talkSoon(): void {
    if (this.#talking) return
    this.#talking = true
    afterThisTurn(() => {
      this.#talking = false
      this.#talk()
    })
  }

  #talk(): void {
    const batch = Math.min(this.#runner.wanted, fetchMax)
    if (this.#fetching === undefined && batch > 0) {
      this.#fetching = this.#fetch(batch).finally(() => {
        this.#fetching = undefined
        this.#talkSoon()
      })
    }
    this.#desk.send(requestAcksMax, () => this.#talkSoon())
  }

  async #fetch(batch: number): Promise<void> {
    const { leaseSeconds, from } = this.#settings
    const acks = this.#hungry ? this.#desk.takeLoose(requestAcksMax) : []
    try {
      const { messages, outcomes } = await this.#calls.fetch({
        batch,
        partitions: batch,
        leaseSeconds,
        from,
        ...(acks.length === 0
          ? { waitMs: parkedMs, signal: this.#parked.signal }
          : { waitMs: 0, acks: acks.map(({ ack }) => ack) }),
      })
      this.#failedFetches = 0
      this.#hungry = messages.length >= batch
      this.#desk.told(acks, outcomes)
      await this.#take(messages)
    } catch (error) {
      this.#desk.putBack(acks)
      this.#hungry = false
      if (this.#parked.signal.aborted) return
      this.#settings.onError(error, { kind: 'fetch' })
      this.#failedFetches += 1
      await pause(backoffMs(this.#failedFetches, systemRandom), this.#parked.signal)
    }
  }

  async #take(messages: readonly Message[]): Promise<void> {
    const [first] = messages
    if (first === undefined) return
    const lease: HeldLease = {
      id: first.leaseId ?? '',
      size: messages.length,
      open: messages.length,
      sinceMs: nowMs(),
      renewing: false,
      lost: false,
    }
    this.#keeper.keep(lease)
    if (!this.#runner.knowsOrder) this.#runner.learn(await this.#readOrder())
    if (lease.lost) return
    const held = messages.map((message) => ({ message, lease, settled: false }))
    if (this.#stopping === undefined) this.#runner.add(held)
    else await this.#giveBack(held)
  }

  /** As the user says, else as the queue says. Where it cannot be asked, the careful answer. */
  async #readOrder(): Promise<QueueOrder> {
    const { ordered } = this.#settings
    if (ordered !== undefined) return { ordered, holds: ordered }
    try {
      const { ordering, onFailure } = await this.#calls.options()
      return { ordered: ordering !== 'none', holds: ordering !== 'none' && onFailure !== 'skip' }
    } catch {
      return { ordered: true, holds: true }
    }
  }
}
