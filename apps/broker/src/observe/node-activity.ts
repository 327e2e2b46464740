// What happens in queues through one node: the primary adds up the counts of its workers and its own.
import type { WakeHint } from '@rouse/protocol'
import type { WorkerStats } from '../ipc.ts'
import { Histograms, type TakenHistogram } from './histogram.ts'
import { NamedQueues } from './named-queues.ts'
import {
  add,
  addAll,
  type CountedField,
  type Counts,
  countOf,
  noCounts,
  type QueueCounts,
} from './queue-counts.ts'
import { SeriesStore } from './series/series-store.ts'
import { TraceStore } from './why/trace-store.ts'
import type { Counted } from './worker-observer.ts'

/** Means of the last ten seconds, and the counts of the last second that is over. */
export interface QueueRate {
  readonly queue: string
  readonly pushedPerSecond: number
  readonly deliveredPerSecond: number
  readonly completedPerSecond: number
  readonly failedPerSecond: number
  readonly lastSecond: LastSecond
}

export interface LastSecond {
  readonly pushed: number
  readonly delivered: number
  readonly completed: number
  readonly failed: number
}

/** What the primary knows for `/metrics`, beside `/stats`. */
export interface NodeMetrics {
  readonly stats: Readonly<Record<string, unknown>>
  /** The queues that have metrics of their own, by name. */
  readonly queues: readonly QueueCounts[]
  /** The sums of all queues. */
  readonly counts: Counts
  readonly histograms: readonly TakenHistogram[]
  readonly releasedLeases: number
  readonly expiredLeases: number
  /** The totals of all workers, including workers that are gone. */
  readonly totals: WorkerTotals
  /** Calls that have exceeded their deadline, by kind of write. */
  readonly overdueWrites: Readonly<Record<string, number>>
}

interface WorkerTotals {
  requests: number
  spans: { exported: number; dropped: number }
  queries: Record<string, number>
  batches: Record<string, { calls: number; requests: number }>
}

export interface NodeActivityOptions {
  /** Monotonic. */
  readonly nowMs: () => number
  /** Milliseconds since 1970. */
  readonly wallMs: () => number
  /** How many queues have metrics of their own. */
  readonly namedQueuesMax: number
}

/** Rates are means over this time. */
const windowSeconds = 10
/** Above this number of queues, the one that was idle for the longest time is dropped. */
const queuesMax = 20_000

export class NodeActivity {
  readonly #nowMs: () => number
  /** The queue that was active last is last. */
  readonly #queues = new Map<string, QueueActivity>()
  readonly #named: NamedQueues
  readonly #counts: Counts = noCounts()
  readonly series: SeriesStore
  readonly traces = new TraceStore()
  readonly histograms = new Histograms()
  #releasedLeases = 0
  #expiredLeases = 0
  /** The last totals of workers that are gone. Without them, a restart of a worker would make totals smaller. */
  readonly #gone: WorkerTotals = noTotals()

  constructor({ nowMs, wallMs, namedQueuesMax }: NodeActivityOptions) {
    // Workers report when a second of the wall clock is over. This clock has the same seconds, and never goes
    // back.
    const offsetMs = wallMs() - nowMs()
    this.#nowMs = () => nowMs() + offsetMs
    this.#named = new NamedQueues(namedQueuesMax)
    this.series = new SeriesStore(wallMs)
  }

  /** What a worker counted since its last report. */
  add({ queues, histograms, releasedLeases, traces }: Counted): void {
    this.#addQueues(queues)
    if (traces.length > 0) this.traces.add(traces)
    this.histograms.add(histograms)
    this.#releasedLeases += releasedLeases
  }

  workerGone(stats: WorkerStats): void {
    addTotals(this.#gone, stats)
  }

  #addQueues(queues: readonly QueueCounts[]): void {
    const nowMs = this.#nowMs()
    this.series.add(queues)
    for (const [queue, counts] of queues) {
      const activity = this.#queues.get(queue) ?? new QueueActivity()
      this.#queues.delete(queue)
      this.#queues.set(queue, activity)
      activity.add(counts, nowMs)
      this.#named.add(queue, counts, nowMs)
      addAll(this.#counts, counts)
    }
    while (this.#queues.size > queuesMax) {
      this.#queues.delete(this.#queues.keys().next().value as string)
    }
  }

  /** The primary moved messages into their queues: those of SQL producers and schedules, and delayed ones. */
  entered(woken: readonly WakeHint[]): void {
    const queues = woken.flatMap(({ queue, count = 0 }): QueueCounts[] => {
      const counts = noCounts()
      add(counts, 'pushed', count)
      return count === 0 ? [] : [[queue, counts]]
    })
    this.#addQueues(queues)
  }

  /** The primary ended leases that had expired. */
  expired(leases: number): void {
    this.#expiredLeases += leases
  }

  /** The primary made dead letters of messages whose lease expired on the last attempt. */
  deadLettered(queue: string, messages: number): void {
    const counts = noCounts()
    add(counts, 'deadLettered', messages)
    this.#addQueues([[queue, counts]])
  }

  metrics(stats: NodeMetrics['stats'], workers: Iterable<WorkerStats>): NodeMetrics {
    const totals = noTotals()
    const overdueWrites: Record<string, number> = {}
    for (const worker of [this.#gone, ...workers]) addTotals(totals, worker)
    for (const { overdue } of workers) {
      for (const [kind, count] of Object.entries(overdue)) {
        overdueWrites[kind] = (overdueWrites[kind] ?? 0) + count
      }
    }
    return {
      stats,
      queues: this.#named.counts(),
      counts: this.#counts,
      histograms: this.histograms.read(),
      releasedLeases: this.#releasedLeases,
      expiredLeases: this.#expiredLeases,
      totals,
      overdueWrites,
    }
  }

  /** The queues with any rate above 0. */
  rates(): QueueRate[] {
    const nowMs = this.#nowMs()
    const rates: QueueRate[] = []
    for (const [queue, activity] of this.#queues) {
      const rate = { queue, ...activity.rate(nowMs) }
      const { pushedPerSecond, deliveredPerSecond, completedPerSecond, failedPerSecond } = rate
      if (pushedPerSecond + deliveredPerSecond + completedPerSecond + failedPerSecond > 0) {
        rates.push(rate)
      }
    }
    return rates
  }
}

function noTotals(): WorkerTotals {
  return { requests: 0, spans: { exported: 0, dropped: 0 }, queries: {}, batches: {} }
}

function addTotals(
  sums: WorkerTotals,
  { requests, spans, queries, batches }: Pick<WorkerStats, keyof WorkerTotals>,
): void {
  sums.requests += requests
  sums.spans = {
    exported: sums.spans.exported + spans.exported,
    dropped: sums.spans.dropped + spans.dropped,
  }
  for (const [name, count] of Object.entries(queries)) {
    sums.queries[name] = (sums.queries[name] ?? 0) + count
  }
  for (const [kind, batch] of Object.entries(batches)) {
    const sum = sums.batches[kind] ?? { calls: 0, requests: 0 }
    const { calls, requests } = batch
    sums.batches[kind] = { calls: sum.calls + calls, requests: sum.requests + requests }
  }
}

class QueueActivity {
  readonly #pushed = new RateWindow('pushed')
  readonly #delivered = new RateWindow('delivered')
  readonly #completed = new RateWindow('completed')
  readonly #failed = new RateWindow('failed', 'retried', 'buried')

  add(counts: Readonly<Counts>, nowMs: number): void {
    this.#pushed.add(counts, nowMs)
    this.#delivered.add(counts, nowMs)
    this.#completed.add(counts, nowMs)
    this.#failed.add(counts, nowMs)
  }

  rate(nowMs: number): Omit<QueueRate, 'queue'> {
    return {
      pushedPerSecond: this.#pushed.perSecond(nowMs),
      deliveredPerSecond: this.#delivered.perSecond(nowMs),
      completedPerSecond: this.#completed.perSecond(nowMs),
      failedPerSecond: this.#failed.perSecond(nowMs),
      lastSecond: {
        pushed: this.#pushed.lastSecond(nowMs),
        delivered: this.#delivered.lastSecond(nowMs),
        completed: this.#completed.lastSecond(nowMs),
        failed: this.#failed.lastSecond(nowMs),
      },
    }
  }
}

/** Reports come when a second is over, and most of what comes later belongs to the last second, too. */
const reportedLateMs = 500
/** A second that is over is complete after this time. */
const completeMs = 250

/** The mean over the last ten seconds whose reports have come, from counts by second. */
export class RateWindow {
  readonly #fields: readonly CountedField[]
  /** By second, modulo their number: those of the window, the current one, and the one before it. */
  readonly #counts: number[] = Array.from({ length: windowSeconds + 2 }, () => 0)
  #second = 0

  /** Counts these fields together. */
  constructor(...fields: readonly CountedField[]) {
    this.#fields = fields
  }

  add(counts: Readonly<Counts>, nowMs: number): void {
    let count = 0
    for (const field of this.#fields) count += countOf(counts, field)
    if (count === 0) return
    const second = Math.floor((nowMs - reportedLateMs) / 1_000)
    this.#moveTo(second)
    this.#counts[this.#slot(second)] = this.#at(second) + count
  }

  perSecond(nowMs: number): number {
    const last = this.#last(nowMs)
    let sum = 0
    for (let ago = 0; ago < windowSeconds; ago += 1) sum += this.#at(last - ago)
    return Math.round((sum * 10) / windowSeconds) / 10
  }

  /** The count of the last second whose reports have come. */
  lastSecond(nowMs: number): number {
    return this.#at(this.#last(nowMs))
  }

  #last(nowMs: number): number {
    const last = Math.floor((nowMs - completeMs) / 1_000) - 1
    this.#moveTo(last)
    return last
  }

  #moveTo(second: number): void {
    const passed = Math.min(second - this.#second, this.#counts.length)
    for (let ago = 0; ago < passed; ago += 1) this.#counts[this.#slot(second - ago)] = 0
    this.#second = Math.max(second, this.#second)
  }

  #at(second: number): number {
    return this.#counts[this.#slot(second)] ?? 0
  }

  #slot(second: number): number {
    const { length } = this.#counts
    return ((second % length) + length) % length
  }
}
