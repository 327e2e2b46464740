// Records the timings of some messages in a worker: of one in 16, and of those that take long. The records go to the
// primary with the stats.
import type { AckOutcome, Delivery } from '@rouse/sidecar'
import type { AckItem, Lease, PushedMessage } from '@rouse/storage'
import { type DeliveryRecord, heldShare, isSampled, type TraceRecord } from './trace-record.ts'

export interface TraceRecorderOptions {
  readonly node: string
  readonly worker: number
  readonly nowMs: () => number
  /** Messages that take longer are recorded. */
  readonly slowMs: number
}

/** Records of one second; further ones are dropped. */
const recordsMax = 500
/** Leases whose end is awaited. */
const openMax = 5_000
/** A rate that withholds messages is recorded this often. */
const limitMs = 250

interface OpenLease {
  readonly queue: string
  readonly partitionId: string
  readonly group: string
  readonly holder: string
  readonly attempt: number
  readonly first: { readonly id: string; readonly seq: number }
  /** By the clock of this process, and by that of the database. */
  readonly atMs: number
  readonly poppedAtMs: number
  readonly records: readonly DeliveryRecord[]
}

export class TraceRecorder {
  readonly #options: TraceRecorderOptions
  #records = new Set<TraceRecord>()
  readonly #open = new Map<string, OpenLease>()
  readonly #limitedAtMs = new Map<string, number>()

  constructor(options: TraceRecorderOptions) {
    this.#options = options
  }

  /** `ms`: from the request to the commit. */
  pushed(results: readonly PushedMessage[], ms: number): void {
    const { node, worker, slowMs } = this.#options
    const isSlow = ms >= slowMs
    for (const { messageId: id } of results) {
      if (isSlow || isSampled(id)) this.#add({ kind: 'push', id, node, worker, ms: tenths(ms) })
    }
  }

  delivered(leases: readonly Lease[], delivery: Delivery): void {
    const atMs = this.#options.nowMs()
    for (const lease of leases) {
      const records = this.#recordsOf(lease, delivery)
      const { leaseId, queue, partitionId, attempt, messages } = lease
      const [first] = messages
      if (first === undefined || delivery.isAutoAcked(lease)) continue
      const { group, databaseTimeMs: poppedAtMs } = delivery
      const holder = delivery.holder(lease)
      const place = { queue, partitionId, group, holder, attempt, first }
      this.#open.set(leaseId, { ...place, atMs, poppedAtMs, records })
      if (this.#open.size > openMax) {
        this.#open.delete(this.#open.keys().next().value as string)
      }
    }
  }

  #recordsOf(lease: Lease, delivery: Delivery): DeliveryRecord[] {
    const { node, worker, slowMs } = this.#options
    const { databaseTimeMs, group, source, hintMs, popMs } = delivery
    const records: DeliveryRecord[] = []
    for (const { id, seq, createdAtMs } of lease.messages) {
      const isSlow = databaseTimeMs - createdAtMs >= slowMs
      if (!isSlow && !isSampled(id)) continue
      const record: DeliveryRecord = {
        kind: 'delivery',
        id,
        node,
        worker,
        group,
        attempt: lease.attempt,
        holder: delivery.holder(lease),
        leaseId: lease.leaseId,
        seq,
        enteredAtMs: createdAtMs,
        poppedAtMs: databaseTimeMs,
        source,
        hintMs: tenths(hintMs),
        popMs: tenths(popMs),
        waitedMs: tenths(delivery.waitedMs(lease)),
        answeredMs: null,
        ackedMs: delivery.isAutoAcked(lease) ? 0 : null,
        status: delivery.isAutoAcked(lease) ? 'completed' : null,
      }
      records.push(record)
      this.#add(record)
    }
    return records
  }

  /** The response with these leases is sent. */
  answered(leases: readonly Pick<Lease, 'leaseId'>[]): void {
    for (const { leaseId } of leases) {
      const open = this.#open.get(leaseId)
      if (open === undefined || open.records.length === 0) continue
      for (const record of open.records) {
        record.answeredMs = tenths(this.#options.nowMs() - open.atMs)
        this.#add(record)
      }
    }
  }

  acked(items: readonly AckItem[], outcomes: readonly AckOutcome[]): void {
    const { nowMs, slowMs } = this.#options
    for (const [i, outcome] of outcomes.entries()) {
      const { leaseId, message, status = 'completed' } = items[i] as AckItem
      const open = this.#open.get(leaseId)
      if (open === undefined || !outcome.accepted) continue
      const heldMs = nowMs() - open.atMs
      for (const record of open.records) {
        if (message !== undefined && message.seq !== record.seq) continue
        record.ackedMs = tenths(heldMs)
        record.status = status
        this.#add(record)
      }
      if (heldMs >= slowMs * heldShare) this.#hold(open, heldMs, status)
    }
  }

  #hold(lease: OpenLease, heldMs: number, status: string): void {
    const { partitionId, group, holder, attempt, first, poppedAtMs } = lease
    const span = { fromMs: poppedAtMs, toMs: poppedAtMs + Math.round(heldMs) }
    const { id, seq } = first
    this.#add({ kind: 'hold', partitionId, group, id, seq, attempt, holder, ...span, status })
  }

  limited(queue: string, group: string, untilMs: number, databaseTimeMs: number): void {
    const key = `${queue}\n${group}`
    if (databaseTimeMs - (this.#limitedAtMs.get(key) ?? 0) < limitMs) return
    if (this.#limitedAtMs.size >= openMax) this.#limitedAtMs.clear()
    this.#limitedAtMs.set(key, databaseTimeMs)
    this.#add({ kind: 'limit', queue, group, fromMs: databaseTimeMs, toMs: untilMs })
  }

  take(): TraceRecord[] {
    const records = [...this.#records]
    this.#records = new Set()
    return records
  }

  /** A record that was sent already is sent again when it changes. */
  #add(record: TraceRecord): void {
    if (this.#records.size < recordsMax) this.#records.add(record)
  }
}

function tenths(ms: number): number {
  return Math.round(ms * 10) / 10
}
