// Records the timings of some messages in a worker: of one in 16, and of those that take long. The records go to the
// primary with the stats. The lease of a delivery is remembered until it ends, because only its end shows whether it was
// held for long. An ack of a lease that this worker does not know is recorded as such: another worker delivered it.
import type { AckOutcome, Delivery } from '@rouse/sidecar'
import type { AckItem, Lease, PushedMessage } from '@rouse/storage'
import {
  type AckRecord,
  type DeliveryRecord,
  heldShare,
  isSampled,
  isSampledPlace,
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

/** Records of one second; further ones are dropped. */
const recordsMax = 500
/** Acks of other workers' leases in one second; of further ones only sampled messages. */
const foreignAcksMax = 500
/** Leases whose end is awaited. */
const openMax = 5_000
/** A rate that withholds messages is recorded this often. */
const limitMs = 250

interface OpenLease {
  readonly record: LeaseRecord
  /** By the monotonic clock of this process. */
  readonly atMs: number
  readonly deliveries: readonly DeliveryRecord[]
  /** Messages that have not ended. */
  left: number
}

type Ended = Pick<AckRecord, 'leaseId' | 'message' | 'status'>

export class TraceRecorder {
  readonly #options: TraceRecorderOptions
  #records = new Set<TraceRecord>()
  #foreignAcks = 0
  /** By lease id. The messages of one pop share it, so it can have several partitions. */
  readonly #open = new Map<string, OpenLease[]>()
  readonly #limitedAtMs = new Map<string, number>()

  constructor(options: TraceRecorderOptions) {
    this.#options = options
  }

  /** `ms`: from the request to the commit. */
  pushed(results: readonly PushedMessage[], ms: number): void {
    const { node, worker, slowMs, isOn = true } = this.#options
    if (!isOn) return
    const isSlow = ms >= slowMs
    for (const { messageId: id } of results) {
      if (isSlow || isSampled(id)) this.#add({ kind: 'push', id, node, worker, ms: tenths(ms) })
    }
  }

  delivered(leases: readonly Lease[], delivery: Delivery): void {
    if (this.#options.isOn === false) return
    const [atMs, wallMs] = [this.#options.nowMs(), this.#options.wallMs()]
    for (const lease of leases) {
      const [first] = lease.messages
      if (first === undefined) continue
      const popped = this.#poppedOf(lease, delivery, wallMs)
      const deliveries = this.#deliveriesOf(lease, delivery, popped)
      if (delivery.isAutoAcked(lease)) continue
      const record: LeaseRecord = {
        ...popped,
        kind: 'lease',
        partitionId: lease.partitionId,
        id: first.id,
        seq: first.seq,
        lastSeq: lease.messages.at(-1)?.seq ?? first.seq,
        expiresAtMs: lease.expiresAtMs,
        endedMs: null,
        isEnded: false,
        status: null,
      }
      this.#remember({ record, atMs, deliveries, left: lease.messages.length })
    }
  }

  #poppedOf(lease: Lease, delivery: Delivery, poppedWallMs: number): Popped {
    const { node, worker } = this.#options
    const { databaseTimeMs, group, source, hintMs, popMs } = delivery
    return {
      node,
      worker,
      group,
      attempt: lease.attempt,
      holder: delivery.holder(lease),
      leaseId: lease.leaseId,
      poppedAtMs: databaseTimeMs,
      poppedWallMs,
      source,
      hintMs: tenths(hintMs),
      popMs: tenths(popMs),
      waitedMs: tenths(delivery.waitedMs(lease)),
      answeredMs: null,
    }
  }

  #deliveriesOf(lease: Lease, delivery: Delivery, popped: Popped): DeliveryRecord[] {
    const { node, worker, slowMs } = this.#options
    const isAutoAcked = delivery.isAutoAcked(lease)
    const records: DeliveryRecord[] = []
    for (const { id, seq, createdAtMs } of lease.messages) {
      const isSlow = delivery.databaseTimeMs - createdAtMs >= slowMs
      if (!isSlow && !isSampled(id)) continue
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
      records.push(record)
      this.#add(record)
    }
    return records
  }

  #remember(open: OpenLease): void {
    const { leaseId } = open.record
    const known = this.#open.get(leaseId)
    if (known === undefined) this.#open.set(leaseId, [open])
    else known.push(open)
    if (this.#open.size > openMax) this.#open.delete(this.#open.keys().next().value as string)
  }

  /** The response with these leases is sent. */
  answered(leases: readonly Pick<Lease, 'leaseId'>[]): void {
    for (const { leaseId } of leases) {
      for (const { record, deliveries, atMs } of this.#open.get(leaseId) ?? []) {
        record.answeredMs = tenths(this.#options.nowMs() - atMs)
        for (const delivery of deliveries) {
          delivery.answeredMs = record.answeredMs
          this.#add(delivery)
        }
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
        this.#end({ leaseId, message, status }, { node, worker }, ({ atMs }) => ms - atMs)
        continue
      }
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
      const isOfSample = message !== null && isSampledPlace(message.partitionId, message.seq)
      if (!isOfSample && this.#foreignAcks >= foreignAcksMax) continue
      if (!isOfSample) this.#foreignAcks += 1
      this.#add(record, recordsMax + foreignAcksMax)
    }
  }

  /** Acks that reached other workers of this node. */
  ackedElsewhere(acks: readonly AckRecord[]): void {
    for (const ack of acks) {
      const { node, worker, wallMs } = ack
      this.#end(ack, { node, worker }, ({ record }) => Math.max(0, wallMs - record.poppedWallMs))
    }
  }

  #end(
    { leaseId, message, status }: Ended,
    ackedBy: WorkerName,
    heldMsOf: (open: OpenLease) => number,
  ): void {
    const all = this.#open.get(leaseId) ?? []
    for (const open of all) {
      const { record, deliveries } = open
      if (message !== null && message.partitionId !== record.partitionId) continue
      const heldMs = tenths(heldMsOf(open))
      for (const delivery of deliveries) {
        if (message !== null && message.seq !== delivery.seq) continue
        Object.assign(delivery, { ackedMs: heldMs, status, ackedBy })
        this.#add(delivery)
      }
      open.left -= message === null ? open.left : 1
      // A failure ends the lease of an ordered partition: the rest of its messages wait for the retry.
      const isEnded = open.left <= 0 || status !== 'completed'
      Object.assign(record, { endedMs: heldMs, status, isEnded })
      if (heldMs >= this.#options.slowMs * heldShare) this.#addLate(open, message?.seq, ackedBy)
    }
    if (all.every(({ left }) => left <= 0)) this.#open.delete(leaseId)
  }

  /** A lease that was held for long, and the ack of its message, if that is not recorded anyway. */
  #addLate({ record, deliveries }: OpenLease, seq: number | undefined, by: WorkerName): void {
    this.#add({ ...record })
    const { leaseId, partitionId, poppedAtMs, poppedWallMs, endedMs, status } = record
    if (seq === undefined || endedMs === null || deliveries.some((one) => one.seq === seq)) return
    const message = { partitionId, seq }
    const times = { wallMs: poppedWallMs + endedMs, atMs: poppedAtMs + endedMs }
    this.#add({ kind: 'ack', leaseId, message, status: status ?? '', ...by, ...times })
  }

  limited(queue: string, group: string, untilMs: number, databaseTimeMs: number): void {
    const key = `${queue}\n${group}`
    if (databaseTimeMs - (this.#limitedAtMs.get(key) ?? 0) < limitMs) return
    if (this.#limitedAtMs.size >= openMax) this.#limitedAtMs.clear()
    this.#limitedAtMs.set(key, databaseTimeMs)
    this.#add({ kind: 'limit', queue, group, fromMs: databaseTimeMs, toMs: untilMs })
  }

  /** Also reports the leases of this partition that are open, as far as this worker knows. */
  report(partitionId: string): void {
    for (const all of this.#open.values()) {
      for (const { record } of all) {
        if (record.partitionId === partitionId) this.#add({ ...record })
      }
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

function tenths(ms: number): number {
  return Math.round(ms * 10) / 10
}
