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
} from './queue-counters.ts'
import { SeriesStore } from './series/series-store.ts'
import { type Counted, type Measured, measured } from './worker-observer.ts'

export interface QueueRate {
  readonly queue: string
  readonly pushedPerSecond: number
  readonly completedPerSecond: number
}

/** What the primary knows for `/metrics`, beside `/stats`. */
export interface NodeMetrics {
  readonly stats: Readonly<Record<string, unknown>>
  /** By name, as far as queues have metrics of their own. */
  readonly queues: readonly QueueCounts[]
  /** Of all queues. */
  readonly counts: Counts
  readonly histograms: readonly TakenHistogram<Measured>[]
  readonly releasedLeases: number
  readonly expiredLeases: number
  /** Of all workers, also of those that are gone. */
  readonly totals: WorkerTotals
  /** Calls that have exceeded their deadline, by kind of write. */
  readonly overdueWrites: Readonly<Record<string, number>>
}

interface WorkerTotals {
  requests: number
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
  readonly histograms = new Histograms(measured)
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
  add({ queues, histograms, releasedLeases }: Counted): void {
    this.#addQueues(queues)
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
      const pushedPerSecond = activity.pushed.perSecond(nowMs)
      const completedPerSecond = activity.completed.perSecond(nowMs)
      if (pushedPerSecond + completedPerSecond > 0) {
        rates.push({ queue, pushedPerSecond, completedPerSecond })
      }
    }
    return rates
  }
}

function noTotals(): WorkerTotals {
  return { requests: 0, queries: {}, batches: {} }
}

function addTotals(
  sums: WorkerTotals,
  { requests, queries, batches }: Pick<WorkerStats, keyof WorkerTotals>,
): void {
  sums.requests += requests
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
  readonly pushed = new RateWindow('pushed')
  readonly completed = new RateWindow('completed')

  add(counts: Readonly<Counts>, nowMs: number): void {
    this.pushed.add(counts, nowMs)
    this.completed.add(counts, nowMs)
  }
}

/** Reports come when a second is over, and most of what comes later belongs to the last second, too. */
const reportedLateMs = 500
/** A second that is over is complete after this time. */
const completeMs = 250

/** The mean over the last ten seconds whose reports have come, from counts by second. */
export class RateWindow {
  readonly #field: CountedField
  /** By second, modulo their number: those of the window, the current one, and the one before it. */
  readonly #counts: number[] = Array.from({ length: windowSeconds + 2 }, () => 0)
  #second = 0

  constructor(field: CountedField) {
    this.#field = field
  }

  add(counts: Readonly<Counts>, nowMs: number): void {
    const count = countOf(counts, this.#field)
    if (count === 0) return
    const second = Math.floor((nowMs - reportedLateMs) / 1_000)
    this.#moveTo(second)
    this.#counts[this.#slot(second)] = this.#at(second) + count
  }

  perSecond(nowMs: number): number {
    const last = Math.floor((nowMs - completeMs) / 1_000) - 1
    this.#moveTo(last)
    let sum = 0
    for (let ago = 0; ago < windowSeconds; ago += 1) sum += this.#at(last - ago)
    return Math.round((sum * 10) / windowSeconds) / 10
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
