// The state of a correct Rouse: queues with their logs, cursors and leases, and how a push changes them.
// Times are milliseconds of the database's clock, which stands still between two calls.
//
// A group has a lane per partition. Messages from `next` on are new; `again` holds those to redeliver; a
// lease holds what was delivered and has not ended. The group is done with all other messages.
import type { OpenTransaction } from './open-transaction.ts'
import { defaults, type Options } from './options.ts'
import type { UniqueKey } from './unique.ts'

export { type Backoff, defaults, type Options } from './options.ts'

export interface Message {
  /** Undefined until a response shows it: nodes choose the ids of scheduled messages. */
  id: string | undefined
  readonly key: string | undefined
  /** Set if the message had no seq when it was scheduled. Without a key, it is then identified by its id. */
  readonly isKnownById?: true
  /** `payload` and `headers` are JSON text. */
  readonly payload: string
  readonly headers: string | null
  readonly traceId: string | null
  readonly createdAt: number
  readonly seq: number
  /** Set by a cancel: it stays in the log and is never delivered. */
  isCancelled?: true
  /** Its own options; undefined: those of its queue. */
  readonly retryLimit?: number | undefined
  readonly retryBackoffMs?: readonly number[] | undefined
  readonly ttlMs?: number | undefined
  /** From its ttlMs: it is not delivered from then on. A redrive may end that. */
  expiresAt?: number | undefined
}

export interface Again {
  readonly attempts: number
  readonly dueAt: number
  /** The lease of the message expired, so the message is delivered alone in its next lease. */
  readonly alone: boolean
  /** The message was released or redriven. A pop may deliver it alone or together with its neighbours. */
  readonly soft: boolean
}

export interface Lane {
  next: number
  readonly again: Map<number, Again>
  /**
   * The seqs of messages that were redriven: their redeliveries have no age limit. A dead letter that a seek
   * delivers again is not among them. Its redelivery can be too old, because the dead letter is still there.
   */
  readonly redriven: Set<number>
  /** What consumers reported about messages, by seq: JSON texts. */
  readonly reports: Map<number, Report>
  /** How many completed attempts of a message were recorded, by seq. */
  readonly recorded: Map<number, number>
  /** When the bucket of partitionRate will be full; undefined: it is. */
  fullAt: number | undefined
}

export interface Report {
  readonly result?: string
  readonly progress?: string
}

export interface Partition {
  readonly name: string
  head: number
  tail: number
  lastAt: number
  readonly log: Map<number, Message>
  readonly keys: Map<string, { readonly id: string; readonly until: number }>
  readonly lanes: Map<string, Lane>
}

export interface Letter {
  readonly group: string
  readonly partition: Partition
  readonly message: Message
  readonly attempts: number
  readonly code: string | null
  readonly failedAt: number
}

export interface Queue {
  readonly name: string
  options: Options
  paused: boolean
  namespace: string | undefined
  task: string | undefined
  readonly groups: Set<string>
  /** By group, when the bucket of its rate will be full. */
  readonly fullAt: Map<string, number>
  readonly partitions: Map<string, Partition>
  /** By scope and key. */
  readonly uniques: Map<string, UniqueKey>
  letters: Letter[]
}

/** The messages of one pop from one lane, or one of them. Without leasePerMessage all leases of a pop have one id. */
export interface Lease {
  readonly id: string
  readonly queue: Queue
  readonly partition: Partition
  readonly partitionId: string
  readonly group: string
  /** The seq of its first message. */
  readonly from: number
  readonly left: Set<number>
  readonly attempt: number
  /** The lease keeps its lane closed until it ends, even if the ordering of the queue changes. */
  readonly isOrdered: boolean
  /** Acks of the lease are recorded as completed attempts. */
  readonly isRecorded: boolean
  expiresAt: number
  lockedBy: OpenTransaction | undefined
}

/** A message as a consumer got it, which acks refer to. */
export interface Delivery {
  readonly lease: Lease
  readonly seq: number
  readonly receipt: string
  /** As the pop returned it: that of the lease, or the receipt if the transactionId is not unique. */
  readonly leaseId: string
  readonly transactionId: string
}

export interface Scheduled {
  readonly queue: string
  readonly partition: string
  readonly dueAt: number
  /** The order of the calls, for messages due at the same time. */
  readonly order: number
  readonly origin: 'sql' | 'broker'
  readonly message: Omit<Message, 'seq' | 'createdAt'>
}

export interface Schedule {
  readonly name: string
  readonly queue: string
  readonly catchUp: 'none' | 'last' | 'all'
  readonly payload: string
  nextAt: number | undefined
}

export class World {
  now: number
  readonly queues = new Map<string, Queue>()
  readonly schedules = new Map<string, Schedule>()
  readonly transactions: OpenTransaction[] = []
  leases: Lease[] = []
  scheduled: Scheduled[] = []
  /** The ids of messages that were cancelled while they were scheduled, with their queues and times. */
  cancelled: { readonly id: string; readonly queue: string; readonly at: number }[] = []
  deliveries: Delivery[] = []
  #order = 0

  constructor(now: number) {
    this.now = now
  }

  nextOrder(): number {
    this.#order += 1
    return this.#order
  }

  queueOf(name: string): Queue {
    let queue = this.queues.get(name)
    if (queue === undefined) {
      queue = {
        name,
        options: { ...defaults },
        paused: false,
        namespace: undefined,
        task: undefined,
        groups: new Set(),
        fullAt: new Map(),
        partitions: new Map(),
        uniques: new Map(),
        letters: [],
      }
      this.queues.set(name, queue)
    }
    return queue
  }

  partitionOf(queue: Queue, name: string): Partition {
    let partition = queue.partitions.get(name)
    if (partition === undefined) {
      const lanes = new Map([...queue.groups].map((group) => [group, newLane(1)]))
      partition = {
        name,
        head: 1,
        tail: 1,
        lastAt: this.now,
        log: new Map(),
        keys: new Map(),
        lanes,
      }
      queue.partitions.set(name, partition)
    }
    return partition
  }

  leasesOf(queue: Queue, group?: string): Lease[] {
    return this.leases.filter(
      (lease) => lease.queue === queue && (group === undefined || lease.group === group),
    )
  }

  drop(gone: readonly Lease[]): void {
    this.leases = this.leases.filter((lease) => !gone.includes(lease))
  }

  append(
    partition: Partition,
    message: Omit<Message, 'seq' | 'createdAt'>,
    windowSeconds: number,
    dueAt = this.now,
  ): void {
    const { head: seq } = partition
    const expiresAt = message.ttlMs === undefined ? undefined : dueAt + message.ttlMs
    partition.log.set(seq, { ...message, seq, createdAt: this.now, expiresAt })
    partition.head += 1
    partition.lastAt = this.now
    if (message.key !== undefined && message.id !== undefined) {
      this.remember(partition, message.key, message.id, windowSeconds)
    }
  }

  remember(partition: Partition, key: string, id: string, windowSeconds: number): void {
    if (windowSeconds === 0) return
    const known = partition.keys.get(key)?.until ?? 0
    const until = Math.max(this.now + windowSeconds * 1_000, known)
    partition.keys.set(key, { id, until })
  }

  /** The id of the message with this key. */
  originalOf(queue: Queue, partition: Partition, key: string): string | undefined {
    if (queue.options.dedupWindowSeconds === 0) return undefined
    const known = partition.keys.get(key)
    return known !== undefined && known.until > this.now ? known.id : undefined
  }

  /** Applies everything that is due: scheduled messages, expired leases, ticks. */
  settle(): void {
    const due = this.scheduled.filter(({ dueAt }) => dueAt <= this.now)
    this.scheduled = this.scheduled.filter(({ dueAt }) => dueAt > this.now)
    for (const one of due.toSorted((a, b) => a.dueAt - b.dueAt || a.order - b.order)) {
      const queue = this.queueOf(one.queue)
      const partition = this.partitionOf(queue, one.partition)
      const { key } = one.message
      const isKnown = key !== undefined && this.originalOf(queue, partition, key) !== undefined
      if (one.origin === 'sql' && isKnown) continue
      this.append(partition, one.message, queue.options.dedupWindowSeconds, one.dueAt)
    }
    for (const schedule of this.schedules.values()) this.#tick(schedule)
  }

  #tick(schedule: Schedule): void {
    const hour = 3_600_000
    const ticks: number[] = []
    for (; schedule.nextAt !== undefined && schedule.nextAt <= this.now; schedule.nextAt += hour) {
      ticks.push(schedule.nextAt)
    }
    const recent = ticks.filter((tick) => tick >= this.now - 5_000)
    const missed =
      recent.length > 0 ? recent : ticks.slice(schedule.catchUp === 'last' ? -1 : ticks.length)
    for (const tick of schedule.catchUp === 'all' ? ticks : missed) {
      const queue = this.queueOf(schedule.queue)
      const partition = this.partitionOf(queue, cronPartition)
      const at = new Date(tick).toISOString()
      const message = {
        id: undefined,
        key: undefined,
        payload: schedule.payload,
        headers: `{"schedule":${JSON.stringify(schedule.name)},"scheduledAt":"${at}"}`,
        traceId: null,
      }
      const delayMs = queue.options.delayedProcessing * 1_000
      if (delayMs === 0) this.append(partition, message, 0)
      else {
        const [origin, order] = ['broker' as const, this.nextOrder()]
        const dueAt = this.now + delayMs
        const delayed = { ...message, isKnownById: true as const }
        this.scheduled.push({
          queue: queue.name,
          partition: partition.name,
          dueAt,
          order,
          origin,
          message: delayed,
        })
      }
    }
  }
}

/**
 * The partition to which only schedules push. In a shared partition, the order of ticks and other messages
 * that are due at the same time would be undefined.
 */
export const cronPartition = 'cron'

/** Where messages without a partition are stored, if the ordering is keyed. */
const independent = '\u001f0'

export function partitionFor(
  ordering: Options['ordering'],
  given: string | null | undefined,
  priority = 0,
): string {
  if (priority > 0) return `\u001f${priority}`
  return given ?? (ordering === 'keyed' ? independent : 'Default')
}

export function shown({ name }: Pick<Partition, 'name'>): string | null {
  return name.startsWith('\u001f') ? null : name
}

/** The priority of the messages of a partition. */
export function priorityIn({ name }: Pick<Partition, 'name'>): number {
  return name.startsWith('\u001f') ? Number(name.slice(1)) : 0
}

export function isExpired({ now }: Pick<World, 'now'>, { expiresAt = Infinity }: Message): boolean {
  return expiresAt <= now
}

export function isOrdered(
  { ordering }: Pick<Options, 'ordering'>,
  partition: Pick<Partition, 'name'>,
): boolean {
  return ordering === 'partition' || (ordering === 'keyed' && shown(partition) !== null)
}

export function newLane(next: number): Lane {
  return {
    next,
    again: new Map(),
    redriven: new Set(),
    reports: new Map(),
    recorded: new Map(),
    fullAt: undefined,
  }
}

export function laneOf(partition: Partition, group: string): Lane {
  const lane = partition.lanes.get(group)
  if (lane === undefined) throw new Error(`${group} has no lane in ${partition.name}`)
  return lane
}

/** The first seq from `next` on that is not cancelled or expired: a pop may have moved the cursor there. */
export function nextOpen(world: World, partition: Partition, next: number): number {
  let seq = Math.max(next, partition.tail)
  for (;;) {
    const message = partition.log.get(seq)
    if (message === undefined || !(message.isCancelled || isExpired(world, message))) return seq
    seq += 1
  }
}

/** Whether a released message may count as new, as if it had not been delivered. */
export function mayBeFresh(lane: Lane, seq: number): boolean {
  const again = lane.again.get(seq)
  return again !== undefined && again.soft && again.attempts === 0 && !lane.redriven.has(seq)
}

/** Messages that a group has not received yet, in order, of any age. */
export function freshOf(partition: Partition, group: string): Message[] {
  const from = Math.max(laneOf(partition, group).next, partition.tail)
  return inOrder(partition.log).filter(({ seq, isCancelled }) => seq >= from && !isCancelled)
}

export function inOrder(log: ReadonlyMap<number, Message>): Message[] {
  return [...log.values()].toSorted((a, b) => a.seq - b.seq)
}

/** Messages older than this are not delivered. */
export function ageMsMax({ ttl, maxWaitTimeSeconds }: Options): number {
  return Math.min(...[ttl, maxWaitTimeSeconds].map((seconds) => (seconds || Infinity) * 1_000))
}
