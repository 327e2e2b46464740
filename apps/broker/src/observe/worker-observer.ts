// What a worker counts and times, and sends to the primary with its stats.
import type { AckOutcome, Delivery, SidecarObserver } from '@rouse/sidecar'
import type { AckItem, Lease, NewMessage, PushedMessage } from '@rouse/storage'
import { durationBoundsMs, Histograms, sizeBounds, type TakenHistogram } from './histogram.ts'
import { DeliveredLeases, QueueCounters, type QueueCounts } from './queue-counters.ts'
import type { TraceRecord } from './why/trace-record.ts'
import { TraceRecorder, type TraceRecorderOptions } from './why/trace-recorder.ts'

/** What the histograms of a node measure. Durations are in milliseconds, sizes in messages. */
export const measured = {
  /** From the creation of a message to its first delivery, by what caused the pop. */
  delivery: durationBoundsMs,
  /** From the delivery of a message to its ack, if the same worker did both. */
  processing: durationBoundsMs,
  /** Messages per SQL call, by kind of call. */
  batch: sizeBounds,
  /** Duration of SQL calls, by function. */
  sql: durationBoundsMs,
  /** The longest delay of the event loop in each second, by process. */
  eventLoop: durationBoundsMs,
} as const
export type Measured = keyof typeof measured

/** What was counted since the last report. */
export interface Counted {
  readonly traces: readonly TraceRecord[]
  readonly queues: readonly QueueCounts[]
  readonly releasedLeases: number
  readonly histograms: readonly TakenHistogram<Measured>[]
}

export class WorkerObserver implements SidecarObserver {
  readonly #nowMs: () => number
  readonly #leases = new DeliveredLeases()
  readonly queues = new QueueCounters(this.#leases)
  readonly histograms = new Histograms(measured)
  readonly traces: TraceRecorder
  #releasedLeases = 0

  constructor(options: TraceRecorderOptions) {
    this.#nowMs = options.nowMs
    this.traces = new TraceRecorder(options)
  }

  pushed(items: readonly NewMessage[], results: readonly PushedMessage[]): void {
    if (items.length === 0) return
    this.queues.pushed(items, results)
    this.histograms.record('batch', 'push', items.length)
  }

  delivered(leases: readonly Lease[], delivery: Delivery): void {
    this.queues.delivered(leases, delivery)
    this.traces.delivered(leases, delivery)
    const nowMs = this.#nowMs()
    const durations = this.histograms.of('delivery', delivery.source)
    let messages = 0
    for (const lease of leases) {
      messages += lease.messages.length
      if (!delivery.isAutoAcked(lease)) this.#leases.add(lease, nowMs)
      if (lease.attempt > 1) continue
      for (const { createdAtMs } of lease.messages) {
        durations.record(Math.max(0, delivery.databaseTimeMs - createdAtMs))
      }
    }
    this.histograms.record('batch', 'pop', messages)
  }

  acked(items: readonly AckItem[], outcomes: readonly AckOutcome[]): void {
    if (items.length === 0) return
    this.queues.acked(items, outcomes)
    this.traces.acked(items, outcomes)
    this.histograms.record('batch', 'ack', items.length)
    const nowMs = this.#nowMs()
    for (const [i, { accepted }] of outcomes.entries()) {
      const { leaseId, message } = items[i] as AckItem
      const lease = accepted ? this.#leases.get(leaseId) : undefined
      if (lease === undefined) continue
      const messages = message === undefined ? lease.messages : 1
      this.histograms.record('processing', '', nowMs - lease.atMs, messages)
    }
  }

  limited(...limit: Parameters<TraceRecorder['limited']>): void {
    this.traces.limited(...limit)
  }

  released(leases: number): void {
    this.#releasedLeases += leases
  }

  called(statement: string, ms: number): void {
    this.histograms.record('sql', statement, ms)
  }

  take(): Counted {
    const releasedLeases = this.#releasedLeases
    this.#releasedLeases = 0
    const [queues, histograms] = [this.queues.take(), this.histograms.take()]
    return { queues, releasedLeases, histograms, traces: this.traces.take() }
  }
}
