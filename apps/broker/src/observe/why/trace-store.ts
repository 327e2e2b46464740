// The records of a node's workers, in its primary: the newest ones, limited in number and in size.
import { isSampledPlace } from '@rouse/protocol'
import type { TraceRecord, TraceRequest } from './trace-record.ts'

const recordsMax = 20_000
const bytesMax = 8 * 1024 * 1024
/** The maximum of acks that are not in the sample and whose lease another worker or node knows. */
const acksMax = 10_000
const ackBytesMax = 4 * 1024 * 1024
/** The size of a record without its texts: an object with numbers and references. */
const bytesPerRecord = 250

export class TraceStore {
  /** Records that are in the sample, or that were chosen because something took long. */
  readonly #chosen = new Records(recordsMax, bytesMax)
  /** Every ack of another worker's lease: only the worker that knows the lease can tell whether it took long. */
  readonly #acks = new Records(acksMax, ackBytesMax)

  /** A record that is known already is replaced. */
  add(records: readonly TraceRecord[]): void {
    for (const record of records) (isPassing(record) ? this.#acks : this.#chosen).add(record)
  }

  get size(): number {
    return this.#chosen.size
  }

  get bytes(): number {
    return this.#chosen.bytes + this.#acks.bytes
  }

  /** Finds the records of a message, the leases of its partition, the limits of its queue, and their acks. */
  find({ id, queue, partitionId, fromMs, leaseIds = [] }: TraceRequest): TraceRecord[] {
    const keys = [`m/${id}`, `q/${queue}`, ...(partitionId === null ? [] : [`p/${partitionId}`])]
    const found = keys
      .flatMap((key) => this.#chosen.find(key))
      .filter((one) => endsAfter(one, fromMs))
    const leases = new Set(leaseIds)
    for (const record of found) if ('leaseId' in record) leases.add(record.leaseId)
    for (const leaseId of leases) {
      const key = `l/${leaseId}`
      found.push(...this.#chosen.find(key), ...this.#acks.find(key))
    }
    return found
  }
}

function isPassing(record: TraceRecord): boolean {
  if (record.kind !== 'ack') return false
  return record.message === null || !isSampledPlace(record.message.partitionId, record.message.seq)
}

function endsAfter(record: TraceRecord, ms: number): boolean {
  if (record.kind === 'limit') return record.toMs >= ms
  if (record.kind !== 'lease') return true
  return (
    record.poppedAtMs + (record.isEnded ? (record.endedMs ?? 0) : Number.POSITIVE_INFINITY) >= ms
  )
}

interface Stored {
  readonly record: TraceRecord
  readonly key: string
  readonly bytes: number
}

/** Records by their names, the oldest first, and by what they are found with: a message, a partition, a queue, a lease. */
class Records {
  readonly #stored = new Map<string, Stored>()
  readonly #byKey = new Map<string, Set<string>>()
  readonly #countMax: number
  readonly #bytesMax: number
  bytes = 0

  constructor(countMax: number, bytesMax: number) {
    this.#countMax = countMax
    this.#bytesMax = bytesMax
  }

  get size(): number {
    return this.#stored.size
  }

  add(record: TraceRecord): void {
    const name = nameOf(record)
    this.#remove(name)
    const key = keyOf(record)
    const bytes = bytesPerRecord + bytesOf(record)
    this.#stored.set(name, { record, key, bytes })
    this.bytes += bytes
    const names = this.#byKey.get(key)
    if (names === undefined) this.#byKey.set(key, new Set([name]))
    else names.add(name)
    while (this.#stored.size > this.#countMax || this.bytes > this.#bytesMax) {
      this.#remove(this.#stored.keys().next().value as string)
    }
  }

  find(key: string): TraceRecord[] {
    return [...(this.#byKey.get(key) ?? [])].flatMap((name) => {
      const record = this.#stored.get(name)?.record
      return record === undefined ? [] : [record]
    })
  }

  #remove(name: string): void {
    const stored = this.#stored.get(name)
    if (stored === undefined) return
    this.#stored.delete(name)
    this.bytes -= stored.bytes
    const names = this.#byKey.get(stored.key)
    names?.delete(name)
    if (names?.size === 0) this.#byKey.delete(stored.key)
  }
}

function nameOf(record: TraceRecord): string {
  switch (record.kind) {
    case 'push':
      return `push/${record.id}`
    case 'delivery':
      return `delivery/${record.leaseId}/${record.id}`
    case 'lease':
      return `lease/${record.leaseId}/${record.partitionId}`
    case 'ack':
      return `ack/${record.leaseId}/${record.message?.partitionId}/${record.message?.seq}`
    case 'limit':
      return `limit/${record.queue}/${record.group}/${record.fromMs}`
  }
}

function keyOf(record: TraceRecord): string {
  switch (record.kind) {
    case 'push':
    case 'delivery':
      return `m/${record.id}`
    case 'lease':
      return `p/${record.partitionId}`
    case 'ack':
      return `l/${record.leaseId}`
    case 'limit':
      return `q/${record.queue}`
  }
}

function bytesOf(record: TraceRecord): number {
  let bytes = 0
  for (const value of Object.values(record)) {
    if (typeof value === 'string') bytes += 2 * value.length
  }
  return bytes
}
