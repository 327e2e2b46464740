// One queue in memory: its messages, its consumer groups, and what each group has done with each message. The
// rules are those of the server, which keeps them in SQL (docs/storage.md). Time is passed in.
//
// A delivery is one message for one group. Its states:
//   ready → leased → completed | dead
//                  → ready (released, or failed with attempts left), due at `dueMs`
//   ready → cancelled, or completed because its time to live has passed
// A message without a partition is independent. In an ordered partition, the first delivery that has not ended decides: if it is leased, or waits for its
// retry while `onFailure` is `hold`, the partition delivers nothing to the group.
import type { ExponentialBackoff } from '../resources/queue-options.ts'

/** A message from its push on. */
export interface MemoryMessage {
  readonly id: string
  readonly queue: string
  /** Null: the message is independent of all others. */
  readonly partition: string | null
  readonly partitionId: string
  readonly transactionId: string
  readonly traceId: string | null
  readonly createdMs: number
  readonly unique: MemoryUnique | null
  /** Null while it is scheduled. */
  seq: number | null
  headers: Readonly<Record<string, unknown>> | null
  /** As JSON text: a handler must not change what is stored. */
  text: string
  dueMs: number
  priority: number
  retryLimit: number | null
  retryBackoffMs: readonly number[] | null
  expiresMs: number | null
  cancelledMs: number | null
}

/** As a push names it. */
export interface MemoryUnique {
  readonly key: string
  readonly scope?: 'queue' | 'partition'
  readonly until?: 'completed' | { readonly windowMs: number }
  readonly onConflict?: 'ignore' | 'replace' | 'reject'
}

export interface Delivery {
  readonly message: MemoryMessage
  state: 'ready' | 'leased' | 'completed' | 'dead' | 'cancelled'
  attempt: number
  dueMs: number
  lease: string | undefined
  /** The name that the last consumer gave itself. */
  consumer: string | null
  deliveredMs: number | null
  completedMs: number | null
  result: unknown
  progress: unknown
  history: FailedAttempt[]
}

export interface FailedAttempt {
  readonly attempt: number
  readonly outcome: 'failed' | 'expired' | 'retry' | 'dlq'
  readonly errorCode: string | null
  readonly errorMessage: string | null
  readonly consumer: string | null
  readonly endedMs: number
}

/** How a delivery ended, in the words of the HTTP API. */
export interface MemoryEnding {
  readonly status: 'completed' | 'failed' | 'retry' | 'dlq'
  readonly error?: string | undefined
  readonly errorCode?: string | undefined
  readonly delayMs?: number | undefined
  readonly result?: unknown
}

export interface MemoryLetter {
  readonly letterId: string
  readonly group: string
  readonly delivery: Delivery
  readonly failedMs: number
}

export interface MemoryGroup {
  readonly name: string
  readonly deliveries: Delivery[]
}

export interface MemoryOptions {
  readonly ordering: 'keyed' | 'partition' | 'none'
  readonly onFailure: 'hold' | 'skip'
  readonly retryLimit: number
  readonly retryBackoffMs: readonly number[]
  readonly retryBackoff?: ExponentialBackoff | null | undefined
  readonly deadLetterQueue: boolean
  readonly dedupWindowSeconds: number
  readonly leaseTime: number
  readonly [name: string]: unknown
}

export const optionDefaults: MemoryOptions = {
  ordering: 'keyed',
  onFailure: 'hold',
  retryLimit: 3,
  retryBackoffMs: [0, 30_000, 300_000],
  deadLetterQueue: true,
  dedupWindowSeconds: 3_600,
  leaseTime: 300,
}

export class MemoryQueue {
  readonly name: string
  options = optionDefaults
  paused = false
  readonly messages: MemoryMessage[] = []
  readonly groups = new Map<string, MemoryGroup>()
  letters: MemoryLetter[] = []
  readonly #seqs = new Map<string | null, number>()
  /** The last message that took each unique key. */
  readonly #unique = new Map<string, MemoryMessage>()
  readonly #keys = new Map<string, { readonly id: string; readonly storedMs: number }>()
  #letterCount = 0

  constructor(name: string) {
    this.name = name
  }

  /** Where a message is stored that names this partition, or none. */
  partitionOf(partition: string | undefined): string | null {
    return partition ?? (this.options.ordering === 'keyed' ? null : 'Default')
  }

  /** The id of the message that has the key, within the queue's dedup window. */
  duplicateOf(partition: string | null, key: string, nowMs: number): string | undefined {
    const found = this.#keys.get(`${partition}\n${key}`)
    if (found === undefined) return undefined
    const ageMs = nowMs - found.storedMs
    return ageMs < this.options.dedupWindowSeconds * 1_000 ? found.id : undefined
  }

  remember(partition: string | null, key: string, id: string, nowMs: number): void {
    this.#keys.set(`${partition}\n${key}`, { id, storedMs: nowMs })
  }

  /** The message that has the unique key now. */
  holderOf(unique: MemoryUnique, partition: string | null, nowMs: number) {
    const holder = this.#unique.get(uniqueId(unique, partition))
    return holder !== undefined && this.hasKey(holder, nowMs) ? holder : undefined
  }

  /** Whether a push with the message's key would be a duplicate of it. */
  hasKey(message: MemoryMessage, nowMs: number): boolean {
    const { unique, cancelledMs, createdMs, seq, partition } = message
    if (unique === null || cancelledMs !== null) return false
    if (this.#unique.get(uniqueId(unique, partition)) !== message) return false
    if (typeof unique.until === 'object') return nowMs < createdMs + unique.until.windowMs
    if (seq === null) return true
    const states = this.deliveriesOf(message).map(({ delivery }) => delivery.state)
    if (states.length === 0) return !isExpired(message, nowMs)
    return states.some((state) => state === 'ready' || state === 'leased')
  }

  takeKey(message: MemoryMessage): void {
    const { unique, partition } = message
    if (unique !== null) this.#unique.set(uniqueId(unique, partition), message)
  }

  /** Stores a message that is due. */
  append(message: MemoryMessage): void {
    const seq = (this.#seqs.get(message.partition) ?? 0) + 1
    this.#seqs.set(message.partition, seq)
    message.seq = seq
    this.messages.push(message)
    for (const group of this.groups.values()) group.deliveries.push(newDelivery(message))
  }

  deliveriesOf(message: MemoryMessage): { group: MemoryGroup; delivery: Delivery }[] {
    return [...this.groups.values()].flatMap((group) =>
      group.deliveries
        .filter((delivery) => delivery.message === message)
        .map((delivery) => ({ group, delivery })),
    )
  }

  /** Ends messages whose time to live has passed: no attempt is charged. */
  expireOld(nowMs: number): void {
    for (const { deliveries } of this.groups.values()) {
      for (const delivery of deliveries) {
        if (delivery.state === 'ready' && isExpired(delivery.message, nowMs)) {
          delivery.state = 'completed'
        }
      }
    }
  }

  /** A new group begins with what is kept, or after it. */
  group(name: string, from: 'all' | 'new' | Date = 'all'): MemoryGroup {
    const known = this.groups.get(name)
    if (known !== undefined) return known
    const isIncluded = ({ createdMs, cancelledMs }: MemoryMessage): boolean =>
      cancelledMs === null &&
      (from === 'all' || (from instanceof Date && createdMs >= from.getTime()))
    const group = { name, deliveries: this.messages.filter(isIncluded).map(newDelivery) }
    this.groups.set(name, group)
    return group
  }

  /** Leases up to `batch` deliveries of up to `partitions` partitions. */
  lease(
    group: MemoryGroup,
    take: {
      readonly batch: number
      readonly partitions: number
      readonly partition?: string | undefined
      readonly lease: string
      readonly consumer: string | null
    },
    nowMs: number,
  ): Delivery[] {
    if (this.paused) return []
    const taken: Delivery[] = []
    const lanes = new Map<string, Delivery[]>()
    for (const delivery of group.deliveries) {
      const { partition } = delivery.message
      if (take.partition !== undefined && partition !== take.partition) continue
      const lane = lanes.get(laneOf(delivery))
      if (lane === undefined) lanes.set(laneOf(delivery), [delivery])
      else lane.push(delivery)
    }
    this.expireOld(nowMs)
    const partitions = new Set<string | number>()
    for (const lane of [...lanes.values()].sort(byPriority)) {
      if (taken.length >= take.batch) break
      const [first, ...rest] = this.#takeable(lane, nowMs).slice(0, take.batch - taken.length)
      if (first === undefined) continue
      // Messages of one priority are a partition of their own.
      const partition = first.message.partition ?? first.message.priority
      if (!partitions.has(partition) && partitions.size >= take.partitions) continue
      partitions.add(partition)
      taken.push(first, ...rest)
    }
    for (const delivery of taken) {
      delivery.state = 'leased'
      delivery.attempt += 1
      delivery.lease = take.lease
      delivery.consumer = take.consumer
      delivery.deliveredMs ??= nowMs
    }
    return taken
  }

  end(group: MemoryGroup, delivery: Delivery, ending: MemoryEnding, nowMs: number): void {
    const { status, errorCode = null, error = null, delayMs, result } = ending
    const { message, consumer } = delivery
    delivery.lease = undefined
    if (status === 'completed') {
      delivery.state = 'completed'
      // A success without a result is not recorded, unless the queue keeps its whole history.
      const isRecorded = result !== undefined || this.options.history === 'all'
      delivery.completedMs = isRecorded ? nowMs : null
      if (result !== undefined) delivery.result = result
      return
    }
    if (status === 'retry') {
      delivery.attempt -= 1
      delivery.state = 'ready'
      delivery.dueMs = nowMs + (delayMs ?? 0)
      return
    }
    const { attempt } = delivery
    const outcome = status === 'dlq' ? 'dlq' : 'failed'
    const failed = { attempt, outcome, errorCode, errorMessage: error, consumer } as const
    delivery.history.push({ ...failed, endedMs: nowMs })
    const { retryLimit, deadLetterQueue } = this.options
    if (status === 'failed' && attempt <= (message.retryLimit ?? retryLimit)) {
      delivery.state = 'ready'
      delivery.dueMs = nowMs + (delayMs ?? this.#backoffMs(message, attempt))
      return
    }
    delivery.state = 'dead'
    if (!deadLetterQueue && status !== 'dlq') return
    this.#letterCount += 1
    const letterId = String(this.#letterCount)
    this.letters.push({ letterId, group: group.name, delivery, failedMs: nowMs })
  }

  /** The lease time of a delivery has passed: the attempt stays charged. */
  expire(group: MemoryGroup, delivery: Delivery, nowMs: number): void {
    this.end(group, delivery, { status: 'failed', errorCode: 'lease_expired' }, nowMs)
  }

  redrive(letter: MemoryLetter, nowMs: number): void {
    this.letters = this.letters.filter((other) => other !== letter)
    Object.assign(letter.delivery, { state: 'ready', attempt: 0, dueMs: nowMs })
  }

  clear(): void {
    this.messages.length = 0
    this.#keys.clear()
    this.#unique.clear()
    for (const { deliveries } of this.groups.values()) deliveries.length = 0
  }

  /** Without jitter, so that tests repeat. */
  #backoffMs(message: MemoryMessage, attempt: number): number {
    const { retryBackoff, retryBackoffMs } = this.options
    const ladder = message.retryBackoffMs ?? (retryBackoff ? undefined : retryBackoffMs)
    if (ladder !== undefined || !retryBackoff) return ladder?.[attempt - 1] ?? ladder?.at(-1) ?? 0
    const { baseMs, factor, maxMs } = retryBackoff
    return Math.min(baseMs * factor ** (attempt - 1), maxMs)
  }

  /** The deliveries that a clock could make deliverable: of an ordered partition, only those at its front. */
  firstOpen(group: MemoryGroup): Delivery[] {
    const open = group.deliveries.filter(({ state }) => state === 'ready')
    if (this.options.ordering === 'none' || this.options.onFailure === 'skip') return open
    const seen = new Set<string>()
    return open.filter((delivery) => !seen.has(laneOf(delivery)) && seen.add(laneOf(delivery)))
  }

  /** The deliveries of one partition that may be delivered now, in order. */
  #takeable(lane: readonly Delivery[], nowMs: number): Delivery[] {
    const isDue = ({ state, dueMs }: Delivery): boolean => state === 'ready' && dueMs <= nowMs
    if (this.options.ordering === 'none') return lane.filter(isDue)
    if (lane.some(({ state }) => state === 'leased')) return []
    if (this.options.onFailure === 'skip') return lane.filter(isDue)
    const open = lane.filter(({ state }) => state === 'ready')
    const blockedAt = open.findIndex((delivery) => !isDue(delivery))
    return blockedAt < 0 ? open : open.slice(0, blockedAt)
  }
}

/** Deliveries of one lane are ordered. An independent message has its own. */
function laneOf({ message }: Delivery): string {
  return message.partition === null ? `m${message.id}` : `p${message.partition}`
}

/** Higher first; with a partition it is always 0. */
function byPriority([a]: readonly Delivery[], [b]: readonly Delivery[]): number {
  return (b?.message.priority ?? 0) - (a?.message.priority ?? 0)
}

export function isExpired({ expiresMs }: MemoryMessage, nowMs: number): boolean {
  return expiresMs !== null && expiresMs <= nowMs
}

function uniqueId({ key, scope }: MemoryUnique, partition: string | null): string {
  return JSON.stringify(scope === 'partition' ? [partition, key] : [key])
}

function newDelivery(message: MemoryMessage): Delivery {
  return {
    message,
    state: 'ready',
    attempt: 0,
    dueMs: 0,
    lease: undefined,
    consumer: null,
    deliveredMs: null,
    completedMs: null,
    result: null,
    progress: null,
    history: [],
  }
}
