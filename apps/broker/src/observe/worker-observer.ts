// What a worker counts and times, from the reports of its sidecar. All of it goes to the primary with the stats that
// the worker sends every second anyway: no message between processes and no query is added per push, pop or ack.
//
// An ack names a partition, not a queue. The worker knows the queue of a partition that it has pushed to or
// popped from. The acks of other partitions wait here until one query has found the queues of all of them.
import type { AckOutcome, Delivery, SidecarObserver } from '@rouse/sidecar'
import type { AckItem, Lease, NewMessage, PushedMessage } from '@rouse/storage'
import { BoundedMap } from './bounded-map.ts'
import { Histograms, type TakenHistogram } from './histogram.ts'
import { type CountedField, countedFields, type QueueCounts } from './queue-counts.ts'
import type { TraceRecord } from './why/trace-record.ts'
import { TraceRecorder, type TraceRecorderOptions } from './why/trace-recorder.ts'

/** What was counted since the last report. */
export interface Counted {
  readonly traces: readonly TraceRecord[]
  readonly queues: readonly QueueCounts[]
  readonly releasedLeases: number
  readonly histograms: readonly TakenHistogram[]
}

/** The counts of a queue by name, until they are sent. */
type Tally = Record<CountedField, number>

interface DeliveredLease {
  /** A partition of the lease. */
  readonly partitionId: string
  readonly messages: number
  readonly atMs: number
}

/** Memory: about 100 bytes each. */
const partitionsMax = 50_000
/** The last leases that this worker has delivered. */
const leasesMax = 10_000
/** Above this number of partitions without a known queue, further acks are not counted by queue. */
const unresolvedMax = 10_000

export class WorkerObserver implements SidecarObserver {
  readonly #nowMs: () => number
  #queues = new Map<string, Tally>()
  /** A partition never moves to another queue. */
  readonly #queueOf = new BoundedMap<string, string>(partitionsMax)
  readonly #leases = new BoundedMap<string, DeliveredLease>(leasesMax)
  #unresolved = new Map<string, Tally>()
  #isResolving = false
  #releasedLeases = 0
  readonly histograms = new Histograms()
  readonly traces: TraceRecorder

  constructor(options: TraceRecorderOptions) {
    this.#nowMs = options.nowMs
    this.traces = new TraceRecorder(options)
  }

  pushed(items: readonly NewMessage[], results: readonly PushedMessage[]): void {
    if (items.length === 0) return
    this.histograms.record('batch', 'push', items.length)
    for (const [i, { status, partitionId }] of results.entries()) {
      const { queue } = items[i] as NewMessage
      this.#tallyOf(queue)[pushedAs[status]] += 1
      this.#learn(partitionId, queue)
    }
  }

  delivered(leases: readonly Lease[], delivery: Delivery): void {
    this.traces.delivered(leases, delivery)
    const nowMs = this.#nowMs()
    const durations = this.histograms.of('delivery', delivery.source)
    let count = 0
    for (const lease of leases) {
      const { queue, partitionId, messages, attempt } = lease
      const tally = this.#tallyOf(queue)
      count += messages.length
      tally.delivered += messages.length
      this.#learn(partitionId, queue)
      if (delivery.isAutoAcked(lease)) tally.completed += messages.length
      else this.#remember(lease, nowMs)
      if (attempt > 1) {
        tally.redelivered += messages.length
        continue
      }
      for (const { createdAtMs } of messages) {
        durations.record(Math.max(0, delivery.databaseTimeMs - createdAtMs))
      }
    }
    if (delivery.source !== 'push') this.histograms.record('batch', 'pop', count)
  }

  acked(items: readonly AckItem[], outcomes: readonly AckOutcome[]): void {
    if (items.length === 0) return
    this.traces.acked(items, outcomes)
    this.histograms.record('batch', 'ack', items.length)
    const nowMs = this.#nowMs()
    for (const [i, outcome] of outcomes.entries()) {
      const item = items[i] as AckItem
      const lease = this.#leases.get(item.leaseId)
      // An ack without a message ends the whole lease: it counts as many messages as were delivered here.
      const messages = item.message === undefined ? (lease?.messages ?? 1) : 1
      const partitionId = item.message?.partitionId ?? lease?.partitionId
      const tally = partitionId === undefined ? undefined : this.#tallyOfPartition(partitionId)
      if (tally !== undefined) countAck(tally, item, outcome, messages)
      if (lease === undefined || !outcome.accepted) continue
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

  /** The queue of a partition, if this worker has seen it. */
  queueOf(partitionId: string): string | undefined {
    return this.#queueOf.get(partitionId)
  }

  /** Finds the queues of partitions whose acks were counted, with one call of `lookUp` for all. Never rejects. */
  async resolve(
    lookUp: (partitionIds: readonly string[]) => Promise<ReadonlyMap<string, string>>,
  ): Promise<void> {
    if (this.#isResolving || this.#unresolved.size === 0) return
    this.#isResolving = true
    const asked = this.#unresolved
    this.#unresolved = new Map()
    try {
      // A partition without a queue has been deleted, and so has its queue.
      for (const [partitionId, queue] of await lookUp([...asked.keys()])) {
        this.#learn(partitionId, queue)
        const tally = asked.get(partitionId)
        if (tally !== undefined) addTally(this.#tallyOf(queue), tally)
      }
    } catch {
      // The database does not answer. The next call tries again.
      for (const [partitionId, tally] of asked) {
        const later = this.#tallyOfPartition(partitionId)
        if (later !== undefined) addTally(later, tally)
      }
    } finally {
      this.#isResolving = false
    }
  }

  /** What was counted and recorded since the last call. */
  take(): Counted {
    const queues = Array.from(this.#queues, ([queue, tally]): QueueCounts => {
      return [queue, countedFields.map((field) => tally[field])]
    })
    const [releasedLeases, histograms] = [this.#releasedLeases, this.histograms.take()]
    this.#queues = new Map()
    this.#releasedLeases = 0
    return { queues, releasedLeases, histograms, traces: this.traces.take() }
  }

  #learn(partitionId: string, queue: string): void {
    if (!this.#queueOf.has(partitionId)) this.#queueOf.set(partitionId, queue)
  }

  /** The messages of one pop share the lease, so it may come once for each of its partitions. */
  #remember({ leaseId, partitionId, messages }: Lease, atMs: number): void {
    const count = messages.length + (this.#leases.get(leaseId)?.messages ?? 0)
    this.#leases.set(leaseId, { partitionId, messages: count, atMs })
  }

  #tallyOf(queue: string): Tally {
    let tally = this.#queues.get(queue)
    if (tally === undefined) this.#queues.set(queue, (tally = newTally()))
    return tally
  }

  #tallyOfPartition(partitionId: string): Tally | undefined {
    const queue = this.#queueOf.get(partitionId)
    if (queue !== undefined) return this.#tallyOf(queue)
    const known = this.#unresolved.get(partitionId)
    if (known !== undefined || this.#unresolved.size >= unresolvedMax) return known
    const tally = newTally()
    this.#unresolved.set(partitionId, tally)
    return tally
  }
}

const pushedAs = {
  queued: 'pushed',
  scheduled: 'scheduled',
  duplicate: 'duplicates',
  replaced: 'duplicates',
} as const
const endedAs = {
  completed: 'completed',
  failed: 'failed',
  retry: 'retried',
  dlq: 'buried',
} as const

function countAck(tally: Tally, item: AckItem, outcome: AckOutcome, messages: number): void {
  if (!outcome.accepted) {
    tally.staleAcks += 1
    return
  }
  tally[endedAs[item.status ?? 'completed']] += messages
  if (outcome.deadLettered) tally.deadLettered += messages
}

function newTally(): Tally {
  return Object.fromEntries(countedFields.map((field) => [field, 0])) as Tally
}

function addTally(sums: Tally, tally: Tally): void {
  for (const field of countedFields) sums[field] += tally[field]
}
