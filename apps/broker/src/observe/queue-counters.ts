// What a worker counts about queues, from the reports of its sidecar. The counts go to the primary with the
// stats that the worker sends every second anyway: no message between processes and no query is added per push,
// pop or ack.
//
// An ack names a partition, not a queue. The worker knows the queue of a partition that it has pushed to or
// popped from. The acks of other partitions wait here until one query has found the queues of all of them.
import type { AckOutcome, Delivery, SidecarObserver } from '@rouse/sidecar'
import type { AckItem, Lease, NewMessage, PushedMessage } from '@rouse/storage'

/** In the order in which their counts are sent. */
export const countedFields = [
  /** Messages that entered the queue. Those with a delay enter when they are due. */
  'pushed',
  /** Messages that were pushed with a delay. */
  'scheduled',
  'duplicates',
  /** Messages given to consumers, first and later attempts. */
  'delivered',
  /** Those of them that were not first attempts. */
  'redelivered',
  'completed',
  /** Attempts that ended as `failed`, `retry` or `dlq`. */
  'failed',
  'retried',
  'buried',
  /** Messages that became dead letters: by an ack, whatever its status, or because the lease expired on the last attempt. */
  'deadLettered',
  /** Refused acks: the lease was lost. */
  'staleAcks',
] as const
export type CountedField = (typeof countedFields)[number]

/** Counts by position in `countedFields`. */
export type Counts = number[]

/** The counts of a queue since the last report. */
export type QueueCounts = readonly [queue: string, counts: Counts]

const at = Object.fromEntries(countedFields.map((field, i) => [field, i])) as Record<
  CountedField,
  number
>

/** Above this number of partitions without a known queue, further acks are not counted by queue. */
const unresolvedMax = 10_000

export class QueueCounters implements Pick<SidecarObserver, 'pushed' | 'delivered' | 'acked'> {
  readonly #leases: Pick<DeliveredLeases, 'get'>
  #queues = new Map<string, Counts>()
  readonly #partitions = new PartitionQueues()
  #unresolved = new Map<string, Counts>()
  #isResolving = false

  /** An ack of a whole lease counts as many messages as the lease had when it was delivered here. */
  constructor(leases: Pick<DeliveredLeases, 'get'>) {
    this.#leases = leases
  }

  pushed(items: readonly NewMessage[], results: readonly PushedMessage[]): void {
    for (const [i, { status, partitionId }] of results.entries()) {
      const { queue } = items[i] as NewMessage
      add(this.#of(queue), pushedAs[status], 1)
      this.#partitions.learn(partitionId, queue)
    }
  }

  delivered(leases: readonly Lease[], { isAutoAcked }: Pick<Delivery, 'isAutoAcked'>): void {
    for (const lease of leases) {
      const { queue, partitionId, messages, attempt } = lease
      const counts = this.#of(queue)
      add(counts, 'delivered', messages.length)
      if (attempt > 1) add(counts, 'redelivered', messages.length)
      this.#partitions.learn(partitionId, queue)
      if (isAutoAcked(lease)) add(counts, 'completed', messages.length)
    }
  }

  acked(items: readonly AckItem[], outcomes: readonly AckOutcome[]): void {
    for (const [i, outcome] of outcomes.entries()) {
      const item = items[i] as AckItem
      const lease = item.message === undefined ? this.#leases.get(item.leaseId) : undefined
      const partitionId = item.message?.partitionId ?? lease?.partitionId
      if (partitionId === undefined) continue
      const counts = this.#countsOf(partitionId)
      if (counts !== undefined) countAck(counts, item, outcome, lease?.messages ?? 1)
    }
  }

  /** The queue of a partition, if this worker has seen it. */
  queueOf(partitionId: string): string | undefined {
    return this.#partitions.queueOf(partitionId)
  }

  /** The counts since the last call. */
  take(): QueueCounts[] {
    const taken = [...this.#queues]
    this.#queues = new Map()
    return taken
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
        this.#partitions.learn(partitionId, queue)
        const counts = asked.get(partitionId)
        if (counts !== undefined) addAll(this.#of(queue), counts)
      }
    } catch {
      // The database does not answer. The next call tries again.
      for (const [partitionId, counts] of asked) {
        const later = this.#countsOf(partitionId)
        if (later !== undefined) addAll(later, counts)
      }
    } finally {
      this.#isResolving = false
    }
  }

  #of(queue: string): Counts {
    let counts = this.#queues.get(queue)
    if (counts === undefined) this.#queues.set(queue, (counts = noCounts()))
    return counts
  }

  #countsOf(partitionId: string): Counts | undefined {
    const queue = this.#partitions.queueOf(partitionId)
    if (queue !== undefined) return this.#of(queue)
    const known = this.#unresolved.get(partitionId)
    if (known !== undefined || this.#unresolved.size >= unresolvedMax) return known
    const counts = noCounts()
    this.#unresolved.set(partitionId, counts)
    return counts
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

function countAck(counts: Counts, item: AckItem, outcome: AckOutcome, messages: number): void {
  if (!outcome.accepted) return add(counts, 'staleAcks', 1)
  add(counts, endedAs[item.status ?? 'completed'], messages)
  if (outcome.deadLettered) add(counts, 'deadLettered', messages)
}

export function noCounts(): Counts {
  return countedFields.map(() => 0)
}

export function add(counts: Counts, field: CountedField, count: number): void {
  counts[at[field]] = (counts[at[field]] ?? 0) + count
}

export function countOf(counts: Readonly<Counts>, field: CountedField): number {
  return counts[at[field]] ?? 0
}

export function addAll(counts: Counts, others: Readonly<Counts>): void {
  for (let i = 0; i < countedFields.length; i += 1) counts[i] = (counts[i] ?? 0) + (others[i] ?? 0)
}

export function sumOf(counts: Readonly<Counts>): number {
  return counts.reduce((sum, count) => sum + count, 0)
}

/** Memory: about 100 bytes each. */
const partitionsMax = 50_000

/** The queues of the partitions that a worker has seen. A partition never moves to another queue. */
class PartitionQueues {
  readonly #queues = new Map<string, string>()

  learn(partitionId: string, queue: string): void {
    if (this.#queues.has(partitionId)) return
    this.#queues.set(partitionId, queue)
    if (this.#queues.size <= partitionsMax) return
    const oldest = this.#queues.keys().next().value
    if (oldest !== undefined) this.#queues.delete(oldest)
  }

  queueOf(partitionId: string): string | undefined {
    return this.#queues.get(partitionId)
  }
}

export interface DeliveredLease {
  /** A partition of the lease. */
  readonly partitionId: string
  readonly messages: number
  readonly atMs: number
}

const leasesMax = 10_000

/** The last leases that a worker has delivered. */
export class DeliveredLeases {
  readonly #leases = new Map<string, DeliveredLease>()

  add({ leaseId, partitionId, messages }: Lease, atMs: number): void {
    const known = this.#leases.get(leaseId)
    const count = messages.length + (known?.messages ?? 0)
    this.#leases.set(leaseId, { partitionId, messages: count, atMs })
    if (this.#leases.size <= leasesMax) return
    const oldest = this.#leases.keys().next().value
    if (oldest !== undefined) this.#leases.delete(oldest)
  }

  get(leaseId: string): DeliveredLease | undefined {
    return this.#leases.get(leaseId)
  }
}
