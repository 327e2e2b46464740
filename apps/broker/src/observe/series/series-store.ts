// What queues did in the past, in the memory of one node: by second for an hour (the node as a whole and its 100
// busiest queues), by minute for a day (up to 10,000 queues). At most 48 MB.
//
// A value is null if the node does not know it: it did not run then, or it had dropped the queue to make room.
// A queue that the node knows to have been idle has zeros.
import { BusiestQueues } from '../busiest-queues.ts'
import { countOf, type QueueCounts, sumOf } from '../queue-counts.ts'
import { MinuteRows } from './minute-rows.ts'
import { SecondRow } from './second-row.ts'

export const seriesFields = ['pushed', 'completed'] as const
export type SeriesField = (typeof seriesFields)[number]

export type Resolution = 'second' | 'minute'
export const stepMs: Readonly<Record<Resolution, number>> = { second: 1_000, minute: 60_000 }
export const kept: Readonly<Record<Resolution, number>> = { second: 3_600, minute: 1_440 }

export interface SeriesRequest {
  /** Undefined: all queues together. */
  readonly queue: string | undefined
  readonly resolution: Resolution
  /** The first and the last step, in steps since 1970. */
  readonly from: number
  readonly to: number
}

/** One value per step, by field. */
export type SeriesValues = Readonly<Record<SeriesField, (number | null)[]>>

const secondQueuesMax = 100
const minuteQueuesMax = 10_000

export class SeriesStore {
  readonly #wallMs: () => number
  readonly #startedAtMs: number
  readonly #totalBySecond: SecondRow
  /** The total by minute has a row of its own, because it is larger than compact counts allow. */
  readonly #totalByMinute = new Map<number, [pushed: number, completed: number]>()
  readonly #bySecond = new Map<string, SecondRow>()
  readonly #busiest = new BusiestQueues(secondQueuesMax, (queue) => this.#left(queue))
  readonly #byMinute: MinuteRows
  /** A queue without a row by second may have been dropped. */
  #hasDropped = false

  constructor(wallMs: () => number) {
    this.#wallMs = wallMs
    this.#startedAtMs = wallMs()
    this.#totalBySecond = new SecondRow(this.#startedAtMs)
    this.#byMinute = new MinuteRows(minuteQueuesMax, this.#startedAtMs)
  }

  add(queues: readonly QueueCounts[]): void {
    const nowMs = this.#wallMs()
    const minute = Math.floor(nowMs / 60_000)
    for (const [queue, counts] of queues) {
      const [pushed, completed] = [countOf(counts, 'pushed'), countOf(counts, 'completed')]
      if (pushed + completed === 0) continue
      this.#totalBySecond.add(nowMs, pushed, completed)
      this.#addTotal(minute, pushed, completed)
      this.#byMinute.add(queue, nowMs, pushed, completed)
      if (this.#busiest.note(queue, sumOf(counts), nowMs)) {
        this.#rowOf(queue, nowMs).add(nowMs, pushed, completed)
      }
    }
  }

  read(request: SeriesRequest): SeriesValues {
    const pushed: (number | null)[] = []
    const completed: (number | null)[] = []
    const { from, to } = request
    const now = Math.floor(this.#wallMs() / stepMs[request.resolution])
    const valueAt = this.#reader(request)
    for (let step = from; step <= to; step += 1) {
      const isKept = step <= now && step > now - kept[request.resolution]
      const value = isKept ? valueAt(step) : undefined
      pushed.push(value?.[0] ?? null)
      completed.push(value?.[1] ?? null)
    }
    return { pushed, completed }
  }

  /** The memory of all rows. */
  bytes(): number {
    return this.#totalBySecond.bytes * (1 + this.#bySecond.size) + this.#byMinute.bytes()
  }

  #reader({ queue, resolution }: SeriesRequest): (step: number) => Pair | undefined {
    const sinceStart = Math.floor(this.#startedAtMs / stepMs[resolution])
    if (queue === undefined) {
      if (resolution === 'second') return (step) => this.#totalBySecond.at(step)
      return (step) => this.#totalByMinute.get(step) ?? (step >= sinceStart ? idle : undefined)
    }
    if (resolution === 'minute') return (step) => this.#byMinute.at(queue, step)
    const row = this.#bySecond.get(queue)
    if (row !== undefined) return (step) => row.at(step)
    // Without a row, a queue was idle, unless there was no room for it.
    const isKnown = this.#bySecond.size < secondQueuesMax && !this.#hasDropped
    return (step) => (isKnown && step >= sinceStart ? idle : undefined)
  }

  #rowOf(queue: string, nowMs: number): SecondRow {
    let row = this.#bySecond.get(queue)
    if (row === undefined) {
      row = new SecondRow(this.#hasDropped ? nowMs : this.#startedAtMs)
      this.#bySecond.set(queue, row)
    }
    return row
  }

  #left(queue: string): void {
    this.#bySecond.delete(queue)
    this.#hasDropped = true
  }

  #addTotal(minute: number, pushed: number, completed: number): void {
    const total = this.#totalByMinute.get(minute) ?? [0, 0]
    this.#totalByMinute.set(minute, [total[0] + pushed, total[1] + completed])
    for (const oldest of this.#totalByMinute.keys()) {
      if (oldest > minute - kept.minute) break
      this.#totalByMinute.delete(oldest)
    }
  }
}

export type Pair = readonly [pushed: number, completed: number]
const idle: Pair = [0, 0]
