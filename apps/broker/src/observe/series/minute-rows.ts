// The counts of a day by minute, for many queues. Rows lie in large blocks, because thousands of small arrays
// would need more memory than their contents.
import { bytesPerPair, compact, expand, readPair, writePair } from './compact-count.ts'
import type { Pair } from './series-store.ts'

const minutes = 1_440
const bytesPerRow = minutes * bytesPerPair
const rowsPerBlock = 50

interface Row {
  readonly bytes: Uint8Array
  /** Minutes before this one are not known. */
  readonly from: number
  /** The current minute, which is exact, and is written when it is over. */
  minute: number
  pushed: number
  completed: number
}

export class MinuteRows {
  readonly #rowsMax: number
  readonly #startedAtMs: number
  /** The queue that was active last is last. */
  readonly #rows = new Map<string, Row>()
  readonly #blocks: ArrayBuffer[] = []
  #free: Uint8Array[] = []
  #hasDropped = false

  constructor(rowsMax: number, startedAtMs: number) {
    this.#rowsMax = rowsMax
    this.#startedAtMs = startedAtMs
  }

  add(queue: string, nowMs: number, pushed: number, completed: number): void {
    const row = this.#rows.get(queue) ?? this.#newRow(nowMs)
    this.#rows.delete(queue)
    this.#rows.set(queue, row)
    moveTo(row, Math.floor(nowMs / 60_000))
    row.pushed += pushed
    row.completed += completed
  }

  /** Undefined: not known. */
  at(queue: string, minute: number): Pair | undefined {
    const row = this.#rows.get(queue)
    if (row === undefined) {
      const isKnown = !this.#hasDropped && minute >= Math.floor(this.#startedAtMs / 60_000)
      return isKnown ? [0, 0] : undefined
    }
    if (minute < row.from || minute <= row.minute - minutes) return undefined
    if (minute === row.minute) return [row.pushed, row.completed]
    if (minute > row.minute) return [0, 0]
    const [pushed, completed] = readPair(row.bytes, minute % minutes)
    return [expand(pushed), expand(completed)]
  }

  bytes(): number {
    return this.#blocks.length * rowsPerBlock * bytesPerRow
  }

  #newRow(nowMs: number): Row {
    const from = Math.floor((this.#hasDropped ? nowMs : this.#startedAtMs) / 60_000)
    const minute = Math.floor(nowMs / 60_000)
    return { bytes: this.#takeBytes(), from, minute, pushed: 0, completed: 0 }
  }

  #takeBytes(): Uint8Array {
    if (this.#rows.size >= this.#rowsMax) {
      const [queue, { bytes }] = this.#rows.entries().next().value as [string, Row]
      this.#rows.delete(queue)
      this.#hasDropped = true
      return bytes.fill(0)
    }
    if (this.#free.length === 0) {
      const block = new ArrayBuffer(rowsPerBlock * bytesPerRow)
      this.#blocks.push(block)
      this.#free = Array.from({ length: rowsPerBlock }, (_, i) => {
        return new Uint8Array(block, i * bytesPerRow, bytesPerRow)
      })
    }
    return this.#free.pop() as Uint8Array
  }
}

/** If the clock was set back, counts are added to the last minute. */
function moveTo(row: Row, minute: number): void {
  if (minute <= row.minute) return
  writePair(row.bytes, row.minute % minutes, compact(row.pushed), compact(row.completed))
  const passed = Math.min(minute - row.minute, minutes)
  for (let ago = 1; ago < passed; ago += 1) writePair(row.bytes, (minute - ago) % minutes, 0, 0)
  row.minute = minute
  row.pushed = 0
  row.completed = 0
}
