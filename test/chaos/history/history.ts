// A history, ready for the checkers: messages with their pushes, deliveries and acks, and bounds for the time
// of each event.
//
// A client knows when it sent a request and when the response came; the effect happened in between. The
// checkers use only the bounds that follow from this:
// - A lease begins after its pop was sent and after all its messages were pushed, and before the response
//   (`begins` … `end`; lease-bounds.ts has the details).
// - A lease expires between `begins` + its duration and `end` + its duration. A successful extension counts
//   from its request for the lower bound and from its response for the upper (`expiresMin` … `expiresMax`).
// - A lease may be over once a client sent an ack or release that was not refused. It is certainly over once
//   that call succeeded. A purge or seek of its queue may also end a lease (operations.ts).
import { RowsByKey } from './columns.ts'
import { HistoryRows } from './history-rows.ts'
import { HistoryTables, outcomes } from './history-tables.ts'
import type { Delivery, Lane, Message, Pop, PushCall, Transaction } from './history-views.ts'
import { Operations } from './operations.ts'
import type { AuditRecord, FaultRecord, HistoryRecord, QueueRecord } from './records.ts'
import { type Span, Windows } from './windows.ts'

/** A pop without a response may have kept running for this long after its own wait was over. */
const unansweredPopMs = 10_000
/** A node gives a pop that runs at its deadline this much longer (`pop-scheduler.ts`). */
const deadlineGraceMs = 40

export class History {
  readonly #tables: HistoryTables
  readonly #rows: HistoryRows
  readonly operations: Operations
  readonly #popsOf: RowsByKey
  readonly #forgetting: Windows
  readonly #faulty: Windows
  readonly #lostPops: readonly Windows[]

  constructor(tables: HistoryTables) {
    this.#tables = tables
    const { pops, consumers, faults } = tables
    const made = faults.filter(({ skipped }) => skipped === undefined)
    this.#faulty = windowsOf(made)
    this.#forgetting = windowsOf(made.filter(({ forgetsLeases }) => forgetsLeases))
    this.operations = new Operations(tables.operations)
    this.#rows = new HistoryRows(tables, this.#faulty, this.operations)
    this.#popsOf = new RowsByKey(pops.consumer, consumers.queue.length)
    this.#lostPops = Array.from(
      { length: consumers.queue.length },
      (_, consumer) => new Windows(this.#lostPopSpansOf(consumer)),
    )
    tables.dropTexts()
  }

  static of(records: Iterable<HistoryRecord>): History {
    const tables = new HistoryTables()
    for (const record of records) tables.add(record)
    return new History(tables)
  }

  get queues(): ReadonlyMap<string, QueueRecord> {
    return this.#tables.queues
  }

  get faults(): readonly FaultRecord[] {
    return this.#tables.faults
  }

  get audit(): AuditRecord | undefined {
    return this.#tables.audit
  }

  /** By the number of the message's id. */
  get cancels(): HistoryTables['cancels'] {
    return this.#tables.cancels
  }

  get messageCount(): number {
    return this.#tables.messages.queue.length
  }

  get deliveryCount(): number {
    return this.#tables.deliveries.message.length
  }

  /** Every message that a client tried to push, or that a client got. */
  *messages(): Iterable<Message> {
    for (let row = 0; row < this.messageCount; row += 1) yield this.message(row)
  }

  /** Only messages that a group got more than once, or with an attempt number other than 1. */
  *redeliveredMessages(): Iterable<Message> {
    for (let row = 0; row < this.messageCount; row += 1) {
      if (this.#rows.isRedelivered(row)) yield this.message(row)
    }
  }

  message(row: number): Message {
    return this.#rows.message(row)
  }

  delivery(row: number): Delivery {
    return this.#rows.delivery(row)
  }

  /** The row of the message with that value, if a client pushed or got it. */
  find(queue: string, value: string): number | undefined {
    const queueNumber = this.#tables.names.find(queue)
    return queueNumber === undefined
      ? undefined
      : this.#tables.values.find(`${queueNumber}/${value}`)
  }

  *lanes(): Iterable<Lane> {
    const { lanes } = this.#tables
    for (let row = 0; row < lanes.consumer.length; row += 1) yield this.#rows.lane(row)
  }

  transactions(): Iterable<Transaction> {
    return this.#rows.transactions()
  }

  *pops(queue: string, group: string): Iterable<Pop> {
    const { names, consumers } = this.#tables
    for (let consumer = 0; consumer < consumers.queue.length; consumer += 1) {
      if (names.textOf(consumers.queue.at(consumer)) !== queue) continue
      if (names.textOf(consumers.group.at(consumer)) !== group) continue
      for (const pop of this.#popsOf.of(consumer)) yield this.#rows.pop(pop)
    }
  }

  /** Whether the database may have forgotten leases in that time (promise 7). */
  forgets(from: number, to: number): boolean {
    return this.#forgetting.touch(from, to)
  }

  /** Whether a fault overlaps that time. */
  faulty(from: number, to: number): boolean {
    return this.#faulty.touch(from, to)
  }

  /**
   * Whether the group of this delivery sent a pop that may have leased messages in that time without returning them:
   * one without a response, or one that was answered after its deadline. The lease of such a pop came too late, and is
   * released.
   */
  lostPop(delivery: Delivery, from: number, to: number): boolean {
    const { deliveries, lanes } = this.#tables
    const consumer = lanes.consumer.at(deliveries.lane.at(delivery.row))
    return this.#lostPops[consumer]?.touch(from, to) ?? false
  }

  /** The times of successful responses by kind of call, in the order in which they were recorded. */
  *okAnswers(): Iterable<{ readonly kind: 'push' | 'pop'; start: number; end: number }> {
    const { calls, pushes, pops } = this.#tables
    const ok = outcomes.indexOf('ok')
    let last = -1
    for (let row = 0; row < pushes.call.length; row += 1) {
      const call = pushes.call.at(row)
      if (call === last || calls.outcome.at(call) !== ok) continue
      last = call
      yield { kind: 'push', start: calls.start.at(call), end: calls.end.at(call) }
    }
    for (let pop = 0; pop < pops.call.length; pop += 1) {
      const call = pops.call.at(pop)
      if (calls.outcome.at(call) !== ok) continue
      yield { kind: 'pop', start: calls.start.at(call), end: calls.end.at(call) }
    }
  }

  /** The start, end and queues of each push call, transactions included. */
  *pushCalls(): Iterable<PushCall> {
    yield* this.#rows.pushCalls()
  }

  /**
   * The times of a consumer's pops without a response, or with a late one, including pops by the namespace or task of its
   * queue.
   */
  *#lostPopSpansOf(consumer: number): Iterable<Span> {
    const { names, consumers, queues } = this.#tables
    yield* this.#lostPopSpans(consumer)
    const sources = queues.get(names.textOf(consumers.queue.at(consumer)))?.sources ?? []
    for (let other = 0; other < consumers.queue.length; other += 1) {
      if (consumers.group.at(other) !== consumers.group.at(consumer)) continue
      if (sources.includes(names.textOf(consumers.queue.at(other))))
        yield* this.#lostPopSpans(other)
    }
  }

  *#lostPopSpans(consumer: number): Iterable<Span> {
    for (const row of this.#popsOf.of(consumer)) {
      const { start, end, waitMs, outcome } = this.#rows.pop(row)
      if (outcome === 'unknown') {
        yield { from: start, to: Math.min(end, start + waitMs + unansweredPopMs) }
      } else if (waitMs > 0 && end - start >= waitMs + deadlineGraceMs) {
        yield { from: start, to: end + unansweredPopMs }
      }
    }
  }
}

function windowsOf(faults: readonly FaultRecord[]): Windows {
  return new Windows(faults.map(({ start, end }) => ({ from: start, to: end })))
}
