// A node in memory, as far as a client can see it: queues, leases, scheduled messages, and pops that wait. Its
// clock is virtual and moves only when a test moves it.
import {
  type Delivery,
  type MemoryEnding,
  type MemoryGroup,
  MemoryQueue,
  type StoredMessage,
} from './memory-queue.ts'

export interface MemoryItem {
  readonly queue: string
  readonly payload: unknown
  readonly partition?: string
  readonly transactionId?: string
  readonly traceId?: string
  readonly headers?: Readonly<Record<string, unknown>>
  readonly delayMs?: number
  readonly runAt?: string
}

export interface PushResult {
  readonly id: string
  readonly status: 'queued' | 'duplicate' | 'scheduled'
  readonly transactionId: string
  readonly partitionId: string
}

export interface MemoryLease {
  readonly id: string
  readonly queue: MemoryQueue
  readonly group: MemoryGroup
  readonly deliveries: readonly Delivery[]
  expiresMs: number
  /** A worker holds it and would renew it in time, so the virtual clock does not end it. */
  readonly isKept: boolean
}

export interface PopRequest {
  readonly queue: string
  readonly group: string
  readonly partition?: string | undefined
  readonly batch: number
  readonly partitions: number
  readonly leaseMs: number | undefined
  readonly autoAck: boolean
  readonly from: 'all' | 'new' | Date
  readonly isWorker: boolean
}

interface Scheduled {
  readonly dueMs: number
  readonly order: number
  readonly item: MemoryItem
  readonly id: string
  readonly createdMs: number
}

export class MemoryServer {
  nowMs: number
  readonly queues = new Map<string, MemoryQueue>()
  readonly leases = new Map<string, MemoryLease>()
  #scheduled: Scheduled[] = []
  readonly #waiters = new Set<() => void>()
  /** Groups that a worker consumes, as `queue` and `group`. */
  readonly #consumed = new Map<string, number>()
  #ids = 0

  constructor(nowMs: number) {
    this.nowMs = nowMs
  }

  queue(name: string): MemoryQueue {
    let queue = this.queues.get(name)
    if (queue === undefined) {
      queue = new MemoryQueue(name)
      this.queues.set(name, queue)
    }
    return queue
  }

  push(items: readonly MemoryItem[]): PushResult[] {
    const results = items.map((item) => this.#store(item))
    this.wake()
    return results
  }

  pop(request: PopRequest): { readonly lease: MemoryLease; readonly taken: readonly Delivery[] } {
    const queue = this.queue(request.queue)
    const group = queue.group(request.group, request.from)
    const id = this.#newId()
    const taken = queue.lease(group, { ...request, lease: id }, this.nowMs)
    const leaseMs = request.leaseMs ?? queue.options.leaseTime * 1_000
    const lease: MemoryLease = {
      id,
      queue,
      group,
      deliveries: taken,
      expiresMs: this.nowMs + leaseMs,
      isKept: request.isWorker,
    }
    if (request.autoAck) {
      for (const delivery of taken) queue.end(group, delivery, { status: 'completed' }, this.nowMs)
    } else if (taken.length > 0) this.leases.set(id, lease)
    return { lease, taken }
  }

  /** The delivery that a lease still holds. */
  held(lease: MemoryLease | undefined, matches: (message: StoredMessage) => boolean) {
    return lease?.deliveries.find(
      (delivery) => delivery.lease === lease.id && matches(delivery.message),
    )
  }

  end(lease: MemoryLease, delivery: Delivery, ending: MemoryEnding): boolean {
    lease.queue.end(lease.group, delivery, ending, this.nowMs)
    if (!lease.deliveries.some((one) => one.lease === lease.id)) this.leases.delete(lease.id)
    this.wake()
    return delivery.state === 'dead'
  }

  /** Ends everything that the lease still holds. Returns false if that is nothing. */
  endAll(lease: MemoryLease | undefined, ending: MemoryEnding): boolean {
    const open = lease?.deliveries.filter((delivery) => delivery.lease === lease.id) ?? []
    for (const delivery of open) this.end(lease as MemoryLease, delivery, ending)
    return open.length > 0
  }

  /** Calls the callback whenever something may have become deliverable, until the result is called. */
  wait(callback: () => void): () => void {
    this.#waiters.add(callback)
    return () => void this.#waiters.delete(callback)
  }

  wake(): void {
    // A callback may remove itself, and none is added here before the next turn.
    for (const callback of this.#waiters) callback()
  }

  /** A worker begins (1) or ends (-1) a request for messages of a group. */
  consumed(queue: string, group: string, change: 1 | -1): void {
    const key = `${queue}\n${group}`
    this.#consumed.set(key, (this.#consumed.get(key) ?? 0) + change)
  }

  /** Moves the clock to a time, without going back, and does what is due then. */
  moveTo(nowMs: number): void {
    this.nowMs = Math.max(this.nowMs, nowMs)
    for (const lease of this.leases.values()) {
      if (lease.isKept || lease.expiresMs > this.nowMs) continue
      for (const delivery of lease.deliveries) {
        if (delivery.lease === lease.id) lease.queue.expire(lease.group, delivery, this.nowMs)
      }
      this.leases.delete(lease.id)
    }
    const due = this.#scheduled.filter(({ dueMs }) => dueMs <= this.nowMs).sort(byDueTime)
    this.#scheduled = this.#scheduled.filter(({ dueMs }) => dueMs > this.nowMs)
    for (const { item, id, createdMs } of due) this.#append(item, id, createdMs)
    this.wake()
  }

  /** Whether a worker has something to do now: a message is leased, or may be delivered to it. */
  get isBusy(): boolean {
    for (const { isKept } of this.leases.values()) if (isKept) return true
    return this.#deliveries().some(({ dueMs }) => dueMs <= this.nowMs)
  }

  /** When the next retry of a consumed group is due. */
  get nextRetryMs(): number | undefined {
    const times = this.#deliveries().map(({ dueMs }) => dueMs)
    return times.length === 0 ? undefined : Math.min(...times)
  }

  /** When anything happens next without a call of a client. */
  get nextEventMs(): number | undefined {
    const times = [
      ...this.#deliveries().map(({ dueMs }) => dueMs),
      ...this.#scheduled.map(({ dueMs }) => dueMs),
      ...[...this.leases.values()].flatMap(({ isKept, expiresMs }) => (isKept ? [] : [expiresMs])),
    ].filter((ms) => ms > this.nowMs)
    return times.length === 0 ? undefined : Math.min(...times)
  }

  countScheduled(queue: string): number {
    return this.#scheduled.filter(({ item }) => item.queue === queue).length
  }

  unschedule(queue: string): void {
    this.#scheduled = this.#scheduled.filter(({ item }) => item.queue !== queue)
  }

  /** What groups with workers have not ended, where no earlier message holds it back. */
  #deliveries(): Delivery[] {
    return [...this.#consumed].flatMap(([key, count]) => {
      const [name = '', groupName = ''] = key.split('\n')
      const queue = this.queues.get(name)
      const group = queue?.groups.get(groupName)
      if (count <= 0 || queue === undefined || group === undefined || queue.paused) return []
      return queue.firstOpen(group)
    })
  }

  #store(item: MemoryItem): PushResult {
    const { queue: name, transactionId } = item
    const queue = this.queue(name)
    const partition = queue.partitionOf(item.partition)
    const id = this.#newId()
    const dueMs =
      item.runAt === undefined ? this.nowMs + (item.delayMs ?? 0) : Date.parse(item.runAt)
    const known = transactionId && queue.duplicateOf(partition, transactionId, this.nowMs)
    const partitionId = partitionIdOf(name, partition)
    if (known) return { id: known, status: 'duplicate', transactionId, partitionId }
    if (transactionId !== undefined) queue.remember(partition, transactionId, id, this.nowMs)
    if (dueMs > this.nowMs) {
      this.#scheduled.push({ dueMs, order: this.#ids, item, id, createdMs: this.nowMs })
      return { id, status: 'scheduled', transactionId: transactionId ?? id, partitionId }
    }
    this.#append(item, id, this.nowMs)
    const stored = queue.messages.at(-1) as StoredMessage
    return { id, status: 'queued', transactionId: stored.transactionId, partitionId }
  }

  #append(item: MemoryItem, id: string, createdMs: number): void {
    const { queue: name, transactionId, traceId, headers, payload } = item
    const queue = this.queue(name)
    const partition = queue.partitionOf(item.partition)
    queue.append({
      id,
      queue: name,
      partition,
      partitionId: partitionIdOf(name, partition),
      traceId: traceId ?? null,
      headers: headers ?? null,
      text: JSON.stringify(payload),
      createdMs,
      ...(transactionId === undefined ? {} : { transactionId }),
    })
  }

  #newId(): string {
    this.#ids += 1
    return `00000000-0000-7000-8000-${this.#ids.toString(16).padStart(12, '0')}`
  }
}

function byDueTime(a: Scheduled, b: Scheduled): number {
  return a.dueMs - b.dueMs || a.order - b.order
}

function partitionIdOf(queue: string, partition: string | null): string {
  return partition === null ? queue : `${queue}/${partition}`
}
