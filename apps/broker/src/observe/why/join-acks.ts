// Joins what several workers and nodes recorded of one message.
import type {
  AckRecord,
  DeliveryRecord,
  LeaseRecord,
  TraceRecord,
  WorkerName,
} from './trace-record.ts'

/** Leases of other messages of the partition, and how long they were held. */
export interface Hold extends Omit<LeaseRecord, 'endedMs' | 'isEnded'> {
  /** The lease was certainly held until this time. */
  readonly heldUntilMs: number
  /** Whether the lease ended at that time; if not, its end is not recorded. */
  readonly isEnded: boolean
}

/**
 * The deliveries of a message, oldest first. A delivery that was not recorded, because it was neither in the
 * sample nor late, is derived from the lease of its pop, if a worker still has that.
 */
export function joinDeliveries(
  records: readonly TraceRecord[],
  message: {
    readonly id: string
    readonly seq: number | null
    readonly enteredAtMs: number | null
  },
): DeliveryRecord[] {
  const deliveries = records.filter((record) => record.kind === 'delivery')
  const known = new Set(deliveries.map(({ leaseId }) => leaseId))
  for (const lease of records) {
    if (lease.kind !== 'lease' || known.has(lease.leaseId) || !covers(lease, message.seq)) continue
    known.add(lease.leaseId)
    deliveries.push(deliveryIn(lease, message))
  }
  return deliveries
    .map((delivery) => withAck(delivery, acksOf(delivery.leaseId, records)))
    .sort((a, b) => a.poppedAtMs - b.poppedAtMs)
}

export function joinHolds(records: readonly TraceRecord[], ownSeq: number | null): Hold[] {
  return records
    .filter((record) => record.kind === 'lease')
    .filter((lease) => !covers(lease, ownSeq))
    .map((lease) => holdOf(lease, acksOf(lease.leaseId, records)))
    .sort((a, b) => a.poppedAtMs - b.poppedAtMs)
}

/** The leases whose end no node has reported yet. */
export function openLeaseIds(records: readonly TraceRecord[]): string[] {
  const open = records.filter(
    (record) =>
      (record.kind === 'delivery' && record.ackedMs === null) ||
      (record.kind === 'lease' && !record.isEnded),
  ) as (DeliveryRecord | LeaseRecord)[]
  const ids = new Set(open.map(({ leaseId }) => leaseId))
  return [...ids].filter((leaseId) => acksOf(leaseId, records).length === 0)
}

function covers({ seq, lastSeq }: LeaseRecord, wanted: number | null): boolean {
  return wanted !== null && wanted >= seq && wanted <= lastSeq
}

function deliveryIn(
  lease: LeaseRecord,
  { id, seq, enteredAtMs }: Parameters<typeof joinDeliveries>[1],
): DeliveryRecord {
  const { endedMs, status } = lease
  const isAlone = lease.seq === lease.lastSeq
  const { node, worker } = lease
  return {
    ...lease,
    kind: 'delivery',
    id,
    seq: seq ?? lease.seq,
    enteredAtMs: enteredAtMs ?? lease.poppedAtMs,
    ackedMs: isAlone ? endedMs : null,
    status: isAlone ? status : null,
    ackedBy: isAlone && endedMs !== null ? { node, worker } : null,
  }
}

function acksOf(leaseId: string, records: readonly TraceRecord[]): AckRecord[] {
  return records.filter(
    (record): record is AckRecord => record.kind === 'ack' && record.leaseId === leaseId,
  )
}

function withAck(delivery: DeliveryRecord, acks: readonly AckRecord[]): DeliveryRecord {
  const ack = acks.find(({ message }) => message === null || message.seq === delivery.seq)
  if (delivery.ackedMs !== null || ack === undefined) return delivery
  const { node, worker, status } = ack
  const ackedBy: WorkerName = { node, worker }
  return { ...delivery, ackedMs: heldMs(delivery, ack), status, ackedBy }
}

function holdOf({ endedMs, isEnded, ...lease }: LeaseRecord, acks: readonly AckRecord[]): Hold {
  const ends = acks.map((ack) => heldMs(lease, ack))
  const ms = Math.max(endedMs ?? 0, ...ends)
  const isAll = acks.some(({ message, status }) => message === null || status !== 'completed')
  const count = lease.lastSeq - lease.seq + 1
  const hasEnded = isEnded || isAll || acks.length >= count
  const status = lease.status ?? acks[0]?.status ?? null
  return { ...lease, status, heldUntilMs: lease.poppedAtMs + ms, isEnded: hasEnded }
}

/** Two times of one node are compared by its own clock, others by that of the database. */
function heldMs(
  lease: Pick<LeaseRecord, 'node' | 'poppedAtMs' | 'poppedWallMs'>,
  { node, wallMs, atMs }: AckRecord,
): number {
  const ms =
    node === lease.node || atMs === null ? wallMs - lease.poppedWallMs : atMs - lease.poppedAtMs
  return Math.max(0, Math.round(ms * 10) / 10)
}
