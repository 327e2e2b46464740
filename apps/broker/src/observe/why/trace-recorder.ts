// Records the timings of some messages in a worker: of one in 16, and of those that take long. The records go to the
// primary with the stats. The lease of a delivery is remembered until it ends, because only its end shows whether it was
// held for long. An ack of a lease that this worker does not know is recorded as such: another worker delivered it.
import { isSampled, isSampledPlace } from '@rouse/protocol'
import type { AckOutcome, Delivery } from '@rouse/sidecar'
import type { AckItem, Lease } from '@rouse/storage'
import { BoundedMap } from '../bounded-map.ts'
import {
  type AckRecord,
  type DeliveryRecord,
  type LeaseRecord,
  type Popped,
  type TraceRecord,
  type WorkerName,
} from './trace-record.ts'

export interface TraceRecorderOptions extends WorkerName {
  /** Monotonic. */
  readonly nowMs: () => number
  /** Milliseconds since 1970. */
  readonly wallMs: () => number
  /** Messages that take longer are recorded. */
  readonly slowMs: number
  /** False: nothing is recorded. */
  readonly isOn?: boolean
}

/** The maximum of records in one second. Further records are dropped. */
const recordsMax = 200
/** The maximum of acks of other workers' leases in one second. Further acks are recorded only if sampled. */
const foreignAcksMax = 500
/** Leases whose end is awaited. */
const openMax = 5_000
/** A lease that is held for this share of `slowMs` keeps others waiting noticeably. */
const heldShare = 0.25
/** A rate that withholds messages is recorded this often. */
const limitMs = 250

/**
 * What the leases of one pop have in common: a copy, because the delivery itself keeps its requests in
 * memory.
 */
interface Pop extends Pick<Delivery, 'databaseTimeMs' | 'group' | 'source' | 'hintMs' | 'popMs'> {
  /** By the monotonic clock of this process, and by the clock of the node. */
  readonly atMs: number
  readonly wallMs: number
}

/** Small, and without the messages: every lease is remembered, but few are recorded. */
interface OpenLease {
  readonly pop: Pop
  readonly leaseId: string
  readonly partitionId: string
  readonly attempt: number
  readonly holder: string
  readonly waitedMs: number
  readonly expiresAtMs: number
  /** The id of the first message of the lease. */
  readonly id: string
  readonly seq: number
  readonly lastSeq: number
  readonly deliveries: readonly DeliveryRecord[]
  /** Messages that have not ended. */
  left: number
  answeredMs: number | null
  endedMs: number | null
  isEnded: boolean
  status: string | null
}

const noDeliveries: readonly DeliveryRecord[] = []

type Ended = Pick<AckRecord, 'leaseId' | 'message' | 'status'>

export class TraceRecorder {
  readonly #options: TraceRecorderOptions
  #records = new Set<TraceRecord>()
  #foreignAcks = 0
  /** By lease id and partition. The messages of one pop share the id, so it can have several partitions. */
  readonly #open = new BoundedMap<string, Map<string, OpenLease>>(openMax)
  readonly #limitedAtMs = new Map<string, number>()

  constructor(options: TraceRecorderOptions) {
    this.#options = options
  }

  /** For a message that is in the sample, or whose push took long. `ms`: from the request to the commit. */
  pushed(id: string, ms: number): void {
    const { node, worker, isOn = true } = this.#options
    if (isOn) this.#add({ kind: 'push', id, node, worker, ms: tenths(ms) })
  }

  delivered(leases: readonly Lease[], delivery: Delivery): void {
    const { nowMs, wallMs, isOn = true } = this.#options
    if (!isOn) return
    const { databaseTimeMs, group, source, hintMs, popMs } = delivery
    const times = { atMs: nowMs(), wallMs: wallMs() }
    const pop: Pop = { databaseTimeMs, group, source, hintMs, popMs, ...times }
    for (const lease of leases) {
      const { leaseId, partitionId, attempt, expiresAtMs, messages } = lease
      const [first] = messages
      if (first === undefined) continue
      const deliveries = this.#deliveriesOf(lease, delivery, pop)
      if (delivery.isAutoAcked(lease)) continue
      this.#remember({
        pop,
        leaseId,
        partitionId,
        attempt,
        holder: delivery.holder(lease),
        waitedMs: delivery.waitedMs(lease),
        expiresAtMs,
        id: first.id,
        seq: first.seq,
        lastSeq: messages.at(-1)?.seq ?? first.seq,
        deliveries,
        left: messages.length,
        answeredMs: null,
        endedMs: null,
        isEnded: false,
        status: null,
      })
    }
  }

  /** Records no more than there is room for: in a backlog every message is late. */
  #deliveriesOf(lease: Lease, delivery: Delivery, pop: Pop): readonly DeliveryRecord[] {
    const { node, worker, slowMs } = this.#options
    const slowBeforeMs = pop.databaseTimeMs - slowMs
    let records: DeliveryRecord[] | undefined
    let popped: Popped | undefined
    for (const { id, seq, createdAtMs } of lease.messages) {
      if (this.#records.size >= recordsMax) break
      if (createdAtMs > slowBeforeMs && !isSampled(id)) continue
      const isAutoAcked = delivery.isAutoAcked(lease)
      const waitedMs = delivery.waitedMs(lease)
      popped ??= this.#poppedOf(pop, { ...lease, holder: delivery.holder(lease), waitedMs })
      const record: DeliveryRecord = {
        ...popped,
        kind: 'delivery',
        id,
        seq,
        enteredAtMs: createdAtMs,
        ackedMs: isAutoAcked ? 0 : null,
        status: isAutoAcked ? 'completed' : null,
        ackedBy: isAutoAcked ? { node, worker } : null,
      }
      records ??= []
      records.push(record)
      this.#add(record)
    }
    return records ?? noDeliveries
  }

  #poppedOf(
    { databaseTimeMs, group, source, hintMs, popMs, wallMs }: Pop,
    {
      leaseId,
      attempt,
      holder,
      waitedMs,
    }: Pick<OpenLease, 'leaseId' | 'attempt' | 'holder' | 'waitedMs'>,
  ): Popped {
    const { node, worker } = this.#options
    return {
      node,
      worker,
      group,
      attempt,
      holder,
      leaseId,
      poppedAtMs: databaseTimeMs,
      poppedWallMs: wallMs,
      source,
      hintMs: tenths(hintMs),
      popMs: tenths(popMs),
      waitedMs: tenths(waitedMs),
      answeredMs: null,
    }
  }

  #leaseRecord(open: OpenLease): LeaseRecord {
    const { partitionId, id, seq, lastSeq, expiresAtMs, answeredMs, endedMs, isEnded, status } =
      open
    return {
      ...this.#poppedOf(open.pop, open),
      kind: 'lease',
      answeredMs,
      partitionId,
      id,
      seq,
      lastSeq,
      expiresAtMs,
      endedMs,
      isEnded,
      status,
    }
  }

  #remember(open: OpenLease): void {
    const known = this.#open.get(open.leaseId)
    const before = known?.get(open.partitionId)
    if (known === undefined) this.#open.set(open.leaseId, new Map([[open.partitionId, open]]))
    else if (before === undefined) known.set(open.partitionId, open)
    else known.set(open.partitionId, joined(before, open))
  }

  /** The response with these leases is sent. */
  answered(leases: readonly Pick<Lease, 'leaseId' | 'partitionId'>[]): void {
    const nowMs = this.#options.nowMs()
    for (const { leaseId, partitionId } of leases) {
      const open = this.#open.get(leaseId)?.get(partitionId)
      if (open === undefined) continue
      open.answeredMs = tenths(nowMs - open.pop.atMs)
      for (const delivery of open.deliveries) {
        delivery.answeredMs = open.answeredMs
        this.#add(delivery)
      }
    }
  }

  acked(items: readonly AckItem[], outcomes: readonly AckOutcome[]): void {
    const { node, worker, wallMs, nowMs, isOn = true } = this.#options
    if (!isOn) return
    for (const [i, outcome] of outcomes.entries()) {
      if (!outcome.accepted) continue
      const { leaseId, message = null, status = 'completed' } = items[i] as AckItem
      if (this.#open.has(leaseId)) {
        const ms = nowMs()
        this.#end({ leaseId, message, status }, { node, worker }, ({ pop }) => ms - pop.atMs)
        continue
      }
      const isOfSample = message !== null && isSampledPlace(message.partitionId, message.seq)
      if (!isOfSample && this.#foreignAcks >= foreignAcksMax) continue
      if (!isOfSample) this.#foreignAcks += 1
      const record: AckRecord = {
        kind: 'ack',
        leaseId,
        message,
        status,
        node,
        worker,
        wallMs: wallMs(),
        atMs: null,
      }
      this.#add(record, recordsMax + foreignAcksMax)
    }
  }

  /** Acks that reached other workers of this node. */
  ackedElsewhere(acks: readonly AckRecord[]): void {
    for (const ack of acks) {
      const { node, worker, wallMs } = ack
      this.#end(ack, { node, worker }, ({ pop }) => Math.max(0, wallMs - pop.wallMs))
    }
  }

  #end(
    { leaseId, message, status }: Ended,
    ackedBy: WorkerName,
    heldMsOf: (open: OpenLease) => number,
  ): void {
    const all = this.#open.get(leaseId)
    if (all === undefined) return
    for (const open of message === null ? all.values() : [all.get(message.partitionId)]) {
      if (open === undefined) continue
      const heldMs = tenths(heldMsOf(open))
      for (const delivery of open.deliveries) {
        if (message !== null && message.seq !== delivery.seq) continue
        delivery.ackedMs = heldMs
        delivery.status = status
        delivery.ackedBy = ackedBy
        this.#add(delivery)
      }
      open.left -= message === null ? open.left : 1
      open.endedMs = heldMs
      open.status = status
      // A failure ends the lease of an ordered partition: the rest of its messages wait for the retry.
      open.isEnded = open.left <= 0 || status !== 'completed'
      if (heldMs >= this.#options.slowMs * heldShare) this.#addLate(open, message?.seq, ackedBy)
      if (open.left <= 0) all.delete(open.partitionId)
    }
    if (all.size === 0) this.#open.delete(leaseId)
  }

  /** A lease that was held for long, and the ack of its message, if that is not recorded anyway. */
  #addLate(open: OpenLease, seq: number | undefined, by: WorkerName): void {
    this.#add(this.#leaseRecord(open))
    const { pop, leaseId, partitionId, deliveries, endedMs, status } = open
    if (seq === undefined || endedMs === null || deliveries.some((one) => one.seq === seq)) return
    const message = { partitionId, seq }
    const times = { wallMs: pop.wallMs + endedMs, atMs: pop.databaseTimeMs + endedMs }
    this.#add({ kind: 'ack', leaseId, message, status: status ?? '', ...by, ...times })
  }

  limited(queue: string, group: string, untilMs: number, databaseTimeMs: number): void {
    const key = `${queue}\n${group}`
    if (databaseTimeMs - (this.#limitedAtMs.get(key) ?? 0) < limitMs) return
    if (this.#limitedAtMs.size >= openMax) this.#limitedAtMs.clear()
    this.#limitedAtMs.set(key, databaseTimeMs)
    this.#add({ kind: 'limit', queue, group, fromMs: databaseTimeMs, toMs: untilMs })
  }

  /** Also reports the open leases of this partition that this worker knows. */
  report(partitionId: string): void {
    for (const all of this.#open.values()) {
      const open = all.get(partitionId)
      if (open !== undefined) this.#add(this.#leaseRecord(open))
    }
  }

  take(): TraceRecord[] {
    const records = [...this.#records]
    this.#records = new Set()
    this.#foreignAcks = 0
    return records
  }

  /** A record that was sent already is sent again when it changes. */
  #add(record: TraceRecord, max = recordsMax): void {
    if (this.#records.size < max) this.#records.add(record)
  }
}

/** Messages of other partitions may be between those of one. */
function joined(one: OpenLease, other: OpenLease): OpenLease {
  return {
    ...one,
    lastSeq: Math.max(one.lastSeq, other.lastSeq),
    deliveries: [...one.deliveries, ...other.deliveries],
    left: one.left + other.left,
  }
}

function tenths(ms: number): number {
  return Math.round(ms * 10) / 10
}
