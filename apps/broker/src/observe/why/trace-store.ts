// The records of a node's workers, in its primary: the newest ones, limited in number and in size.
import type { TraceRecord, TraceRequest } from './trace-record.ts'

const recordsMax = 20_000
const bytesMax = 8 * 1024 * 1024
/** Of an object with numbers and references, without its texts. */
const bytesPerRecord = 250

interface Stored {
  readonly record: TraceRecord
  readonly keys: readonly string[]
  readonly bytes: number
}

export class TraceStore {
  /** Oldest first. */
  readonly #stored = new Map<string, Stored>()
  /** Records by what they are found with: a message, a partition, a queue. */
  readonly #byKey = new Map<string, Set<string>>()
  #bytes = 0

  /** A record that is known already is replaced. */
  add(records: readonly TraceRecord[]): void {
    for (const record of records) {
      const name = nameOf(record)
      this.#remove(name)
      const keys = [keyOf(record)]
      const bytes = bytesPerRecord + bytesOf(record)
      this.#stored.set(name, { record, keys, bytes })
      this.#bytes += bytes
      for (const key of keys) {
        const names = this.#byKey.get(key)
        if (names === undefined) this.#byKey.set(key, new Set([name]))
        else names.add(name)
      }
    }
    while (this.#stored.size > recordsMax || this.#bytes > bytesMax) {
      this.#remove(this.#stored.keys().next().value as string)
    }
  }

  get size(): number {
    return this.#stored.size
  }

  get bytes(): number {
    return this.#bytes
  }

  /** What concerns a message: its own records, long leases of its partition, limits of its queue. */
  find({ id, queue, partitionId, fromMs }: TraceRequest): TraceRecord[] {
    const keys = [`m/${id}`, `q/${queue}`, ...(partitionId === null ? [] : [`p/${partitionId}`])]
    return keys.flatMap((key) => {
      const names = [...(this.#byKey.get(key) ?? [])]
      return names.flatMap((name) => {
        const record = this.#stored.get(name)?.record
        return record === undefined || ('toMs' in record && record.toMs < fromMs) ? [] : [record]
      })
    })
  }

  #remove(name: string): void {
    const stored = this.#stored.get(name)
    if (stored === undefined) return
    this.#stored.delete(name)
    this.#bytes -= stored.bytes
    for (const key of stored.keys) {
      const names = this.#byKey.get(key)
      names?.delete(name)
      if (names?.size === 0) this.#byKey.delete(key)
    }
  }
}

function nameOf(record: TraceRecord): string {
  switch (record.kind) {
    case 'push':
      return `push/${record.id}`
    case 'delivery':
      return `delivery/${record.leaseId}/${record.id}`
    case 'hold':
      return `hold/${record.partitionId}/${record.group}/${record.fromMs}/${record.seq}`
    case 'limit':
      return `limit/${record.queue}/${record.group}/${record.fromMs}`
  }
}

function keyOf(record: TraceRecord): string {
  switch (record.kind) {
    case 'push':
    case 'delivery':
      return `m/${record.id}`
    case 'hold':
      return `p/${record.partitionId}`
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
