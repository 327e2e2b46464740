/// <reference lib="esnext.disposable" preserve="true" />
// Fetches messages, runs handlers, and acknowledges. Handlers wait for none of these requests.
//
// A fetch also carries the acknowledgements that are pending when it is sent. The server applies them, and
// then the fetch waits for messages, but only briefly, because its answer contains their results. A fetch
// without acknowledgements waits long. Acknowledgements that become pending while a fetch waits are sent in
// separate requests.
//
// A lease whose messages are all completed is acknowledged by a separate request, which costs the server less
// than a list. If the queue may have more messages, the next fetch is sent at the same time. Otherwise it is
// held back until the answer, for a few milliseconds at most: in an ordered queue it would find the partitions
// still leased. After a fetch with many messages the next one is held back in any case, so that it returns
// more: a fetch costs the server much more than a message in it.

import { afterThisTurn, nowMs, pause } from '../clock.ts'
import { type Duration, parseDuration } from '../duration.ts'
import { backoffMs } from '../http/backoff.ts'
import type { Acked } from '../instrument.ts'
import { systemRandom } from '../randomness.ts'
import { RouseError } from '../rouse-error.ts'
import { AckSender, leaseLost, type PendingAck } from './ack-sender.ts'
import { type Ack, type ConsumerCalls, requestAcksMax } from './consumer-calls.ts'
import { FetchHold } from './fetch-hold.ts'
import { ackOf, type Held, type HeldLease } from './held.ts'
import type { Job } from './job.ts'
import { JobRunner } from './job-runner.ts'
import { LeaseKeeper } from './lease-keeper.ts'
import type { Message } from './message.ts'
import { givenOrder, keepsResults, orderOf, safeOrder } from './queue-order.ts'
import type { WorkSettings } from './work-options.ts'
import { Events, reportedTo, type WorkerEvents } from './worker-events.ts'

export interface WorkerOptions {
  // biome-ignore lint/suspicious/noExplicitAny: only the handler knows the type of the data
  readonly calls: ConsumerCalls<any>
  readonly settings: WorkSettings
  readonly handle: (job: Job) => unknown
  /** Called when a stop begins. From then on, no messages are fetched. */
  readonly onStopping?: (() => void) | undefined
  readonly onStopped: () => void
}

/** How long a fetch waits at the server before it returns empty. */
const parkedMs = 30_000
/** The same for a fetch with acknowledgements; at most a sixth of the lease time. */
const carryingMs = 1_000
/** A fetch with acknowledgements that takes longer than its wait and this time counts as failed. */
const carryingSlackMs = 1_000
/** How long acknowledgements are sent separately after such a fetch failed: a lock may delay them. */
const carryPauseMs = 5_000
/** After a fetch with this many messages, the next one is held back. */
const gatherMin = 32
const fetchMax = 1_000
const stopTimeoutDefault = '10s'
/** How long a handler may run after its signal aborted. */
const abortedMs = 1_000
/** The minimum time for the remaining acknowledgements after the timeout. */
const flushMs = 1_000
/** How long a waiting fetch may take to end on a stop. A node answers at once; some proxies never do. */
const leavingMs = 1_000
/** How many refused acknowledgements may wait for a check. Further ones are reported without a check. */
const refusalsMax = 100

/** Runs the handlers that `work` or `workBatch` was given, until it is stopped. */
export class Worker {
  readonly #calls: WorkerOptions['calls']
  readonly #settings: WorkSettings
  readonly #events: Events
  readonly #keeper: LeaseKeeper
  readonly #acks: AckSender
  readonly #runner: JobRunner
  readonly #onStopping: () => void
  readonly #onStopped: () => void
  /** Aborts when a stop begins. Waiting fetches then stop waiting but still read an answer on its way. */
  readonly #leaving = new AbortController()
  /** Aborts waiting fetches that have not ended within `leavingMs` of a stop. */
  readonly #parked = new AbortController()
  /** Aborts all requests in flight when the time for the stop is over. */
  readonly #cut = new AbortController()
  /** Resolves when all refusals so far have been checked. */
  #refusals: Promise<void> = Promise.resolve()
  #refusalsWaiting = 0
  #fetching: Promise<void> | undefined
  #failedFetches = 0
  /** The last fetch returned as many messages as requested, so there may be more. */
  #hasMore = false
  /** The number of messages of the last fetch. */
  #lastCount = 0
  /** No fetch carries acknowledgements before this time. */
  #carryFromMs = 0
  readonly #hold = new FetchHold(() => this.#scheduleRequests())
  #talking = false
  #stopping: Promise<void> | undefined

  constructor({ calls, settings: given, handle, onStopping, onStopped }: WorkerOptions) {
    this.#events = new Events((error) => given.onError(error, { kind: 'handler' }))
    const settings = reportedTo(this.#events, given)
    this.#calls = calls
    this.#onStopping = onStopping ?? (() => {})
    this.#onStopped = onStopped
    this.#settings = settings
    const leaseMs = settings.leaseSeconds * 1_000
    const { signal } = this.#cut
    this.#keeper = new LeaseKeeper({
      leaseMs,
      extend: (lease, limits) =>
        calls.extend(lease.id, { seconds: settings.leaseSeconds }, { ...limits, signal }),
      onLost: (lease) => {
        if (this.#runner.lose(lease)) settings.onError(leaseLost(), { kind: 'lease' })
        this.#scheduleRequests()
      },
      onError: (error) => {
        if (!signal.aborted) settings.onError(error, { kind: 'lease' })
      },
    })
    this.#acks = new AckSender({
      send: (acks) =>
        this.#acked(acks, () => calls.ack(acks.map(toAck), { retryForMs: leaseMs, signal })),
      sendLease: (acks) =>
        this.#acked(acks, () => {
          const { lease } = (acks[0] as PendingAck).held
          return calls.ackLease(lease.id, { retryForMs: leaseMs, signal })
        }),
      isOurs: ({ lease }) => this.#keeper.isOurs(lease),
      onEnded: (ack, error) => {
        const isOurs = this.#keeper.isOurs(ack.held.lease)
        this.#keeper.ended(ack.held.lease)
        if (error !== undefined) this.#refused(ack, error, isOurs)
      },
    })
    const { queue, group, instrument, traced } = calls
    this.#runner = new JobRunner({
      settings,
      handle: (job) =>
        instrument({ kind: 'handle', queue, group, deliveries: job.messages }, () => handle(job)),
      acks: this.#acks,
      keeper: this.#keeper,
      events: this.#events,
      transact: (messages, ending, items) => {
        const acks = messages.map((held) => ({ held, ending }))
        return this.#acked(acks, () => calls.transact(acks.map(toAck), items))
      },
      progress: (message, value) => calls.progress(message, value, { signal }),
      traced,
      isCompleted: (message) => calls.isCompleted(message, { signal }),
      onChange: () => this.#scheduleRequests(),
    })
  }

  /** Calls the listener at each event of this name, until the returned function is called. */
  on<Name extends keyof WorkerEvents>(
    name: Name,
    listener: (event: WorkerEvents[Name]) => void,
  ): () => void {
    return this.#events.on(name, listener)
  }

  /** As `stop`, for `await using`. */
  [Symbol.asyncDispose](): Promise<void> {
    return this.stop()
  }

  /** `work` and `workBatch` have called it already. */
  start(): void {
    this.#keeper.start()
    this.#scheduleRequests()
  }

  /**
   * Stops fetching, releases messages that wait for a handler, and waits for running handlers. After the
   * timeout the signals of these handlers abort and their messages are released. Resolves when the server has
   * all acknowledgements, at the latest one second after the timeout, or two if a handler ignores its signal.
   * Acknowledgements that have failed by then are reported to `onError`. Idempotent.
   */
  stop({ timeout = stopTimeoutDefault }: { readonly timeout?: Duration } = {}): Promise<void> {
    this.#stopping ??= this.#stop(parseDuration(timeout, 'timeout'))
    return this.#stopping
  }

  async #stop(timeoutMs: number): Promise<void> {
    const deadlineMs = nowMs() + timeoutMs
    const fetched = this.#leave()
    const released = this.#releaseWaiting(this.#runner.stop())
    this.#onStopping()
    this.#scheduleRequests()
    await this.#runner.idle(timeoutMs)
    this.#runner.abortAll()
    await this.#runner.idle(abortedMs)
    this.#runner.giveUp()
    const sent = this.#flushRest([fetched, released])
    const isSent = new AbortController()
    void sent.then(() => isSent.abort())
    await pause(Math.max(deadlineMs - nowMs(), flushMs), isSent.signal)
    this.#cut.abort(new RouseError('closed', 'the worker stopped before the server answered'))
    await sent
    this.#keeper.stop()
    this.#onStopped()
    this.#events.emit('stopped', {})
  }

  /** Resolves when no fetch is in flight and the messages of the last fetch are released. */
  async #leave(): Promise<void> {
    this.#leaving.abort()
    const left = new AbortController()
    void pause(leavingMs, left.signal).then(() => this.#parked.abort())
    await this.#fetching
    left.abort()
  }

  /** Waits for the last fetch first: if it fails, the acknowledgements it carried are sent here. */
  async #flushRest(first: readonly Promise<void>[]): Promise<void> {
    await Promise.all(first)
    await this.#acks.flush(requestAcksMax)
    await this.#refusals
  }

  /**
   * If a handler itself calls `rouse.ack_in`, its message is acknowledged before the handler returns, and the
   * server refuses the worker's acknowledgement. The lease is not lost then, so the worker queries the state
   * of the message before it reports a lost lease.
   */
  #refused({ ending, held, onSettled }: PendingAck, error: RouseError, isOurs: boolean): void {
    const { message } = held
    const report = (): void => this.#settings.onError(error, { kind: 'ack', message })
    const mayBeEnded = error.code === 'lease_lost' && ending.status === 'completed' && isOurs
    if (!mayBeEnded || onSettled !== undefined || this.#refusalsWaiting >= refusalsMax)
      return report()
    this.#refusalsWaiting += 1
    this.#refusals = this.#refusals.then(async () => {
      const limits = { signal: this.#cut.signal }
      const isCompleted = await this.#calls.isCompleted(message, limits).catch(() => false)
      this.#refusalsWaiting -= 1
      if (!isCompleted) report()
    })
  }

  /**
   * Releases messages that wait for a handler: a whole lease at once, a part of a lease message by message.
   */
  async #releaseWaiting(waiting: readonly Held[]): Promise<void> {
    const leases = new Set(waiting.map(({ lease }) => lease))
    const released: Promise<void>[] = []
    for (const lease of leases) {
      const messages = waiting.filter((held) => held.lease === lease)
      if (messages.length === lease.open) {
        this.#keeper.drop(lease)
        released.push(this.#calls.release(lease.id, { signal: this.#cut.signal }))
      } else for (const held of messages) this.#acks.add(held, { status: 'retry' })
    }
    for (const result of await Promise.allSettled(released)) {
      if (result.status === 'rejected') this.#settings.onError(result.reason, { kind: 'lease' })
    }
  }

  get #isLeaving(): boolean {
    return this.#leaving.signal.aborted
  }

  /** Sends requests after this turn of the event loop: messages that end in the same turn share a request. */
  #scheduleRequests(): void {
    if (this.#talking) return
    this.#talking = true
    afterThisTurn(() => {
      this.#talking = false
      this.#sendRequests()
    })
  }

  #sendRequests(): void {
    const batch = Math.min(this.#runner.wanted, fetchMax)
    const gathers = this.#acks.hasWhole || this.#lastCount >= gatherMin
    const fetches =
      this.#fetching === undefined && batch > 0 && !this.#hold.isHeld(gathers && !this.#hasMore)
    const acks = fetches ? this.#takeCarried() : []
    this.#acks.send(requestAcksMax, () => this.#scheduleRequests())
    if (!fetches) return
    this.#fetching = this.#fetch(batch, acks).finally(() => {
      this.#fetching = undefined
      this.#scheduleRequests()
    })
  }

  /** The acknowledgements that the next fetch carries. */
  #takeCarried(): PendingAck[] {
    if (this.#hasMore) return this.#acks.takeLoose(requestAcksMax, 'returns')
    if (this.#acks.hasWhole || nowMs() < this.#carryFromMs) return []
    return this.#acks.takeLoose(requestAcksMax, 'waits')
  }

  async #fetch(batch: number, acks: readonly PendingAck[]): Promise<void> {
    const { leaseSeconds, from, consumer } = this.#settings
    const begunMs = nowMs()
    const carryMs = this.#hasMore ? 0 : Math.min(carryingMs, (leaseSeconds * 1_000) / 6)
    try {
      const { messages, outcomes } = await this.#acked(acks, () =>
        this.#calls.fetch({
          batch,
          partitions: batch,
          leaseSeconds,
          consumer,
          from,
          leave: this.#leaving.signal,
          ...(acks.length === 0
            ? { waitMs: parkedMs, signal: this.#parked.signal }
            : {
                waitMs: Math.floor(carryMs),
                acks: acks.map(toAck),
                signal: this.#cut.signal,
                retryForMs: 0,
              }),
        }),
      )
      this.#failedFetches = 0
      this.#hasMore = messages.length >= batch
      this.#lastCount = messages.length
      this.#acks.settle(acks, outcomes)
      if (acks.length > 0 && nowMs() - begunMs > carryMs + carryingSlackMs) this.#pauseCarrying()
      await this.#take(messages)
    } catch (error) {
      this.#acks.putBack(acks)
      this.#hasMore = false
      if (this.#leaving.signal.aborted) return
      // The acknowledgements may be the reason. They and the next fetch are sent separately, with retries.
      if (acks.length > 0) return this.#pauseCarrying()
      this.#settings.onError(error, { kind: 'fetch' })
      this.#failedFetches += 1
      await pause(backoffMs(this.#failedFetches, systemRandom), this.#leaving.signal)
    }
  }

  /** Shows the request that sends these acknowledgements to an observer. */
  #acked<Result>(acks: readonly Acked[], run: () => Result): Result {
    const { queue, group, instrument } = this.#calls
    return acks.length === 0 ? run() : instrument({ kind: 'ack', queue, group, acks }, run)
  }

  #pauseCarrying(): void {
    this.#carryFromMs = nowMs() + carryPauseMs
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
      hasAckIn: false,
    }
    this.#keeper.keep(lease)
    const held = messages.map((message) => ({
      message,
      lease,
      settled: false,
      ending: undefined,
      ackedIn: undefined,
    }))
    if (!this.#isLeaving && !this.#runner.knowsOrder) await this.#learn()
    if (lease.lost) return
    if (this.#isLeaving) await this.#releaseWaiting(held)
    else this.#runner.add(held)
  }

  /**
   * What the user set, otherwise what the queue's options say. If the queue cannot be queried, every message
   * with a partition is handled in order, which is always safe, and no result is kept.
   */
  async #learn(): Promise<void> {
    const { ordered, results } = this.#settings
    const isSet = ordered !== undefined && results !== undefined
    const options = isSet
      ? undefined
      : await this.#calls.options({ signal: this.#leaving.signal }).catch(() => undefined)
    const order = options === undefined ? safeOrder : orderOf(options)
    this.#runner.learn(
      ordered === undefined ? order : givenOrder(ordered),
      results ?? keepsResults(options ?? {}),
    )
  }
}

function toAck({ held, ending }: Pick<PendingAck, 'held' | 'ending'>): Ack {
  return ackOf(held.message, ending)
}
