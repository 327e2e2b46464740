// A node in memory, as far as a client can see it: queues, leases, scheduled messages, and pops that wait. Its
// clock is virtual and moves only when a test moves it.
import type { Body } from './memory-http.ts'
import {
  type Delivery,
  type MemoryEnding,
  type MemoryGroup,
  type MemoryMessage,
  MemoryQueue,
  type MemoryUnique,
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
  readonly unique?: MemoryUnique
  readonly priority?: number
  readonly retryLimit?: number
  readonly retryBackoffMs?: number | readonly number[]
  readonly ttlMs?: number
}

export interface PushResult {
  readonly id: string
  readonly status: 'queued' | 'duplicate' | 'scheduled' | 'replaced'
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
  readonly consumer: string | null
  readonly isWorker: boolean
}

export class MemoryServer {
  nowMs: number
  readonly queues = new Map<string, MemoryQueue>()
  readonly leases = new Map<string, MemoryLease>()
  /** In the order of their pushes. */
  #scheduled: MemoryMessage[] = []
  /** Cancelled before they were due. */
  #cancelled: MemoryMessage[] = []
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
  held(lease: MemoryLease | undefined, matches: (message: MemoryMessage) => boolean) {
    return lease?.deliveries.find(
      (delivery) => delivery.lease === lease.id && matches(delivery.message),
    )
  }

  leaseOf(id: string | undefined): MemoryLease | undefined {
    return this.leases.get((id ?? '').split('.')[0] ?? '')
  }

  /** The delivery that a receipt, or the three ids, name, if it is still leased. */
  find({ receipt, leaseId, transactionId, partitionId }: Body) {
    const [id, messageId] = String(receipt ?? leaseId).split('.')
    const lease = this.leaseOf(id)
    const delivery = this.held(lease, (message) =>
      receipt === undefined
        ? message.transactionId === transactionId && message.partitionId === partitionId
        : message.id === messageId,
    )
    return lease === undefined || delivery === undefined ? undefined : { lease, delivery }
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
    const isDue = ({ dueMs }: MemoryMessage): boolean => dueMs <= this.nowMs
    const due = this.#scheduled.filter(isDue).sort((a, b) => a.dueMs - b.dueMs)
    this.#scheduled = this.#scheduled.filter((message) => !isDue(message))
    for (const message of due) this.queue(message.queue).append(message)
    for (const queue of this.queues.values()) queue.expireOld(this.nowMs)
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

  /** All messages that are kept, in the order of their pushes within each state. */
  messagesOf(queue?: string): MemoryMessage[] {
    const stored = [...this.queues.values()].flatMap(({ messages }) => messages)
    return [...stored, ...this.#scheduled, ...this.#cancelled].filter(
      (message) => queue === undefined || message.queue === queue,
    )
  }

  countScheduled(queue: string): number {
    return this.#scheduled.filter((message) => message.queue === queue).length
  }

  /** Forgets the messages of a queue that are scheduled, or were cancelled while they were scheduled. */
  unschedule(queue: string): void {
    const isOther = (message: MemoryMessage): boolean => message.queue !== queue
    this.#scheduled = this.#scheduled.filter(isOther)
    this.#cancelled = this.#cancelled.filter(isOther)
  }

  /** Ends a message that no group holds or has ended. It keeps its dedupe key. */
  cancel(message: MemoryMessage): void {
    message.cancelledMs = this.nowMs
    for (const { delivery } of this.queue(message.queue).deliveriesOf(message)) {
      delivery.state = 'cancelled'
    }
    if (message.seq === null) {
      this.#scheduled = this.#scheduled.filter((one) => one !== message)
      this.#cancelled.push(message)
    }
    this.wake()
  }

  /** Makes a scheduled message, or its retries, due. Returns false if it is neither. */
  runNow(message: MemoryMessage): boolean {
    const retrying = this.queue(message.queue)
      .deliveriesOf(message)
      .filter(({ delivery: { state, dueMs } }) => state === 'ready' && dueMs > this.nowMs)
    const isScheduled = this.#scheduled.includes(message)
    if (isScheduled) message.dueMs = this.nowMs
    for (const { delivery } of retrying) delivery.dueMs = this.nowMs
    this.moveTo(this.nowMs)
    return isScheduled || retrying.length > 0
  }

  /**
   * Deliveries that groups with workers have yet to end, without those that an earlier message holds back.
   */
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
    const queue = this.queue(item.queue)
    const partition = queue.partitionOf(item.partition)
    const partitionId = partitionIdOf(item.queue, partition)
    const id = this.#newId()
    const { transactionId = id, unique } = item
    const known = queue.duplicateOf(partition, transactionId, this.nowMs)
    if (known) return { id: known, status: 'duplicate', transactionId, partitionId }
    const holder = unique && queue.holderOf(unique, partition, this.nowMs)
    const answer = { transactionId, partitionId }
    if (holder !== undefined) {
      const isReplaced = unique?.onConflict === 'replace' && this.#replace(holder, item)
      if (isReplaced) return { ...answer, id: holder.id, status: 'replaced' }
      if (unique?.onConflict !== 'replace') return { ...answer, id: holder.id, status: 'duplicate' }
    }
    queue.remember(partition, transactionId, id, this.nowMs)
    const message: MemoryMessage = {
      id,
      queue: item.queue,
      partition,
      partitionId,
      transactionId,
      traceId: item.traceId ?? null,
      createdMs: this.nowMs,
      unique: unique ?? null,
      seq: null,
      cancelledMs: null,
      ...this.#fieldsOf(item),
    }
    queue.takeKey(message)
    const isScheduled = message.dueMs > this.nowMs
    if (isScheduled) this.#scheduled.push(message)
    else queue.append(message)
    return { ...answer, id, status: isScheduled ? 'scheduled' : 'queued' }
  }

  /** Gives a message that no consumer has been given the content of the item. */
  #replace(message: MemoryMessage, item: MemoryItem): boolean {
    const deliveries = this.queue(message.queue).deliveriesOf(message)
    if (deliveries.some(({ delivery }) => delivery.attempt > 0)) return false
    const { text, headers, ...options } = this.#fieldsOf(item)
    Object.assign(message, { text, headers })
    if (message.seq === null) Object.assign(message, options)
    this.moveTo(this.nowMs)
    return true
  }

  #fieldsOf(item: MemoryItem) {
    const { runAt, delayMs = 0, ttlMs, retryBackoffMs } = item
    const dueMs = runAt === undefined ? this.nowMs + delayMs : Date.parse(runAt)
    return {
      text: JSON.stringify(item.payload),
      headers: item.headers ?? null,
      dueMs,
      priority: item.priority ?? 0,
      retryLimit: item.retryLimit ?? null,
      retryBackoffMs: retryBackoffMs === undefined ? null : [retryBackoffMs].flat(),
      expiresMs: ttlMs === undefined ? null : Math.max(dueMs, this.nowMs) + ttlMs,
    }
  }

  #newId(): string {
    this.#ids += 1
    return `00000000-0000-7000-8000-${this.#ids.toString(16).padStart(12, '0')}`
  }
}

function partitionIdOf(queue: string, partition: string | null): string {
  return partition === null ? queue : `${queue}/${partition}`
}
