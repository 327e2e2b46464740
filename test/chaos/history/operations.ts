// Purges, seeks, redrives and subscriptions, and when each may have happened. A purge, or a seek of one
// group, ends leases and skips messages; after a seek or a redrive, attempts count from one again.
import type { OperatorRecord } from './records.ts'
import { type Span, Windows } from './windows.ts'

export type OperationKind = OperatorRecord['kind']

/** One group of one queue. */
export interface Place {
  readonly queue: string
  readonly group: string
}

/** An operation without a response may still take effect for this long after it was sent. */
const unansweredMs = 20_000

export class Operations {
  readonly #records: readonly OperatorRecord[]
  readonly #byPlace = new Map<string, readonly OperatorRecord[]>()
  readonly #windows = new Map<string, Windows>()
  readonly #subscriptions = new Map<string, ReadonlyMap<string, readonly OperatorRecord[]>>()
  readonly #moves = new Map<string, readonly Span[]>()

  constructor(records: readonly OperatorRecord[]) {
    this.#records = records
      .filter(({ outcome }) => outcome !== 'fail')
      .flatMap((record) => (mayMove(record) ? [record, { ...record, kind: 'seek' }] : record))
  }

  get isEmpty(): boolean {
    return this.#records.length === 0
  }

  /** Whether an operation of these kinds may have affected the group in that time. */
  touch(kinds: readonly OperationKind[], place: Place, from: number, to: number): boolean {
    return !this.isEmpty && kinds.some((kind) => this.#windowsOf(kind, place).touch(from, to))
  }

  /**
   * The earliest time at which a purge or seek may have ended a lease that began at `begins`; Infinity if
   * there is none.
   */
  movedFrom(place: Place, begins: number): number {
    if (this.isEmpty) return Number.POSITIVE_INFINITY
    const key = keyOf('move', place)
    const moves =
      this.#moves.get(key) ??
      (['purge', 'seek'] as const)
        .flatMap((kind) => this.of(kind, place).map(spanOf))
        .sort((a, b) => a.from - b.from)
    this.#moves.set(key, moves)
    return moves.find(({ to }) => to >= begins)?.from ?? Number.POSITIVE_INFINITY
  }

  of(kind: OperationKind, place: Place): readonly OperatorRecord[] {
    const key = keyOf(kind, place)
    const records =
      this.#byPlace.get(key) ??
      this.#records.filter(
        (record) =>
          record.kind === kind &&
          record.queue === place.queue &&
          (record.group === undefined || record.group === place.group),
      )
    this.#byPlace.set(key, records)
    return records
  }

  /** The groups that subscribed during the run. */
  subscriptions(queue: string): ReadonlyMap<string, readonly OperatorRecord[]> {
    const cached = this.#subscriptions.get(queue)
    if (cached !== undefined) return cached
    const groups = new Map<string, OperatorRecord[]>()
    this.#subscriptions.set(queue, groups)
    for (const record of this.#records) {
      if (record.kind !== 'subscribe' || record.queue !== queue) continue
      const known = groups.get(record.group ?? '')
      if (known === undefined) groups.set(record.group ?? '', [record])
      else known.push(record)
    }
    return groups
  }

  #windowsOf(kind: OperationKind, place: Place): Windows {
    const key = keyOf(kind, place)
    const windows = this.#windows.get(key) ?? new Windows(this.of(kind, place).map(spanOf))
    this.#windows.set(key, windows)
    return windows
  }
}

/** A subscription without a response may take effect after its group was created. It then acts as a seek. */
function mayMove({ kind, outcome }: OperatorRecord): boolean {
  return kind === 'subscribe' && outcome !== 'ok'
}

/** When the operation may have happened. */
export function spanOf({ kind, outcome, start, end }: OperatorRecord): Span {
  // A client waits until its redrive is over, so the redrive is over at the end of the record.
  const isOver = outcome === 'ok' || kind === 'redrive'
  return { from: start, to: isOver ? end : start + unansweredMs }
}

function keyOf(kind: OperationKind | 'move', { queue, group }: Place): string {
  return JSON.stringify([kind, queue, group])
}
