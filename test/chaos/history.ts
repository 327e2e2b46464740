// A history, ready to be judged: messages with their pushes, deliveries and acknowledgements, and what was certain when.
//
// A client knows when it asked and when it heard; what it asked for happened at some moment in between. From that
// follow bounds, and the checkers conclude from bounds alone, never from guesses:
// - a lease begins no earlier than its pop was sent, nor than the push of anything that it handed out was, and no later
//   than the answer came (`begins` … `end`; lease-bounds.ts has the fine print);
// - it runs out no earlier than `begins` + its length (or what a successful extension promised, counted from when it was
//   asked for), and no later than `end` + its length, extensions counted from their answers (`expiresMin` … `expiresMax`);
// - it may be over from the moment somebody sent an acknowledgement or a release that was not refused; it surely is
//   when that was answered with success.
import { Column, mapRows, RowsByKey } from './columns.ts'
import {
  ackStatuses,
  HistoryTables,
  outcomes,
  pushers,
  pushStatuses,
  takens,
  textOf,
} from './history-tables.ts'
import type { Acked, Delivery, Lane, Message, Pop, Pushed, Transaction } from './history-views.ts'
import { type LeaseBounds, leaseBounds } from './lease-bounds.ts'
import type { AuditRecord, FaultRecord, HistoryRecord, QueueRecord } from './records.ts'
import { type Span, Windows } from './windows.ts'

export { HistoryWriter } from './history-writer.ts'

/** A pop that was never answered may still have been under way so long after its own wait. */
const unansweredPopMs = 10_000

export class History {
  readonly #tables: HistoryTables
  readonly #bounds: LeaseBounds
  readonly #pushesOf: RowsByKey
  readonly #deliveriesOf: RowsByKey
  readonly #deliveriesInLane: RowsByKey
  readonly #popsOf: RowsByKey
  readonly #acksOf: RowsByKey
  readonly #ackDeliveries: Column
  readonly #forgetting: Windows
  readonly #faulty: Windows
  readonly #lostPops: readonly Windows[]
  readonly #transactionCalls: ReadonlySet<number>

  constructor(tables: HistoryTables) {
    this.#tables = tables
    this.#transactionCalls = new Set(tables.transactionCalls)
    const { deliveries, pushes, acks, messages, lanes, pops, consumers } = tables
    const deliveryOfLease = new Int32Array(tables.leaseCount).fill(-1)
    for (let row = 0; row < deliveries.lease.length; row += 1) {
      deliveryOfLease[deliveries.lease.at(row)] = row
    }
    this.#ackDeliveries = new Column('integer')
    for (let row = 0; row < acks.lease.length; row += 1) {
      this.#ackDeliveries.push(deliveryOfLease[acks.lease.at(row)] ?? -1)
    }
    this.#pushesOf = new RowsByKey(pushes.message, messages.queue.length)
    this.#deliveriesOf = new RowsByKey(deliveries.message, messages.queue.length)
    this.#deliveriesInLane = new RowsByKey(deliveries.lane, lanes.consumer.length)
    this.#popsOf = new RowsByKey(pops.consumer, consumers.queue.length)
    this.#acksOf = new RowsByKey(this.#ackDeliveries, deliveries.message.length)
    const made = tables.faults.filter(({ skipped }) => skipped === undefined)
    this.#faulty = new Windows(made.map(({ start, end }) => ({ from: start, to: end })))
    this.#bounds = leaseBounds(tables, deliveryOfLease, this.#faulty)
    this.#forgetting = new Windows(
      made
        .filter(({ forgetsLeases }) => forgetsLeases)
        .map(({ start, end }) => ({ from: start, to: end })),
    )
    this.#lostPops = Array.from(
      { length: consumers.queue.length },
      (_, consumer) => new Windows(this.#lostPopSpans(consumer)),
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

  get messageCount(): number {
    return this.#tables.messages.queue.length
  }

  get deliveryCount(): number {
    return this.#tables.deliveries.message.length
  }

  /** Every message that anybody tried to push, or was handed. */
  *messages(): Iterable<Message> {
    for (let row = 0; row < this.messageCount; row += 1) yield this.message(row)
  }

  /** Only those that came more than once to somebody, or not at the first attempt. */
  *troubledMessages(): Iterable<Message> {
    for (let row = 0; row < this.messageCount; row += 1) {
      if (this.#isTroubled(this.#deliveriesOf.of(row))) yield this.message(row)
    }
  }

  message(row: number): Message {
    const { names, values, messages } = this.#tables
    const text = values.textOf(row)
    const deliveries = mapRows(this.#deliveriesOf.of(row), (delivery) => this.delivery(delivery))
    return {
      row,
      queue: names.textOf(messages.queue.at(row)),
      value: text.slice(text.indexOf('/') + 1),
      pushes: mapRows(this.#pushesOf.of(row), (push) => this.#pushed(push)),
      deliveries: deliveries.length > 1 ? deliveries.sort((a, b) => a.end - b.end) : deliveries,
    }
  }

  /** The row of the message of that name, if anybody pushed it or was handed it. */
  find(queue: string, value: string): number | undefined {
    const queueNumber = this.#tables.names.find(queue)
    return queueNumber === undefined
      ? undefined
      : this.#tables.values.find(`${queueNumber}/${value}`)
  }

  *lanes(): Iterable<Lane> {
    const { names, lanes, consumers } = this.#tables
    for (let lane = 0; lane < lanes.consumer.length; lane += 1) {
      const consumer = lanes.consumer.at(lane)
      yield {
        queue: names.textOf(consumers.queue.at(consumer)),
        group: names.textOf(consumers.group.at(consumer)),
        partition: names.textOf(lanes.partition.at(lane)),
        deliveries: mapRows(this.#deliveriesInLane.of(lane), (row) => this.delivery(row)),
      }
    }
  }

  *transactions(): Iterable<Transaction> {
    const { calls, names, pushes, acks } = this.#tables
    const pushesByCall = new RowsByKey(pushes.call, calls.start.length)
    const acksByCall = new RowsByKey(acks.call, calls.start.length)
    for (const call of this.#tables.transactionCalls) {
      yield {
        call,
        start: calls.start.at(call),
        end: calls.end.at(call),
        outcome: textOf(outcomes, calls.outcome.at(call)),
        process: names.textOf(calls.process.at(call)),
        acked: mapRows(acksByCall.of(call), (row) => this.#ackDeliveries.at(row)),
        pushed: mapRows(pushesByCall.of(call), (row) => pushes.message.at(row)),
      }
    }
  }

  *pops(queue: string, group: string): Iterable<Pop> {
    const { names, consumers } = this.#tables
    for (let consumer = 0; consumer < consumers.queue.length; consumer += 1) {
      if (names.textOf(consumers.queue.at(consumer)) !== queue) continue
      if (names.textOf(consumers.group.at(consumer)) !== group) continue
      for (const pop of this.#popsOf.of(consumer)) yield this.#pop(pop)
    }
  }

  delivery(row: number): Delivery {
    const { names, calls, pops, deliveries, lanes, consumers } = this.#tables
    const pop = deliveries.pop.at(row)
    const call = pops.call.at(pop)
    const lane = deliveries.lane.at(row)
    const consumer = lanes.consumer.at(lane)
    const bounds = this.#bounds
    return {
      row,
      message: deliveries.message.at(row),
      pop,
      process: names.textOf(calls.process.at(call)),
      queue: names.textOf(consumers.queue.at(consumer)),
      group: names.textOf(consumers.group.at(consumer)),
      partition: names.textOf(lanes.partition.at(lane)),
      id: deliveries.id.at(row),
      seq: deliveries.seq.at(row),
      attempt: deliveries.attempt.at(row),
      amount: deliveries.amount.at(row),
      start: calls.start.at(call),
      end: calls.end.at(call),
      leaseMs: pops.leaseMs.at(pop),
      begins: bounds.begins.at(pop),
      expiresMin: bounds.expiresMin.at(pop),
      expiresMax: bounds.expiresMax.at(pop),
      releasedMin: bounds.releasedMin.at(pop),
      releasedMax: bounds.releasedMax.at(pop),
      acks: mapRows(this.#acksOf.of(row), (ack) => this.#acked(ack)),
    }
  }

  /** Whether the database may have forgotten leases in that time (promise 7). */
  forgets(from: number, to: number): boolean {
    return this.#forgetting.touch(from, to)
  }

  /** Whether any fault touched that time. */
  faulty(from: number, to: number): boolean {
    return this.#faulty.touch(from, to)
  }

  /** Whether a pop of that group whose answer nobody heard may have leased something in that time. */
  lostPop(delivery: Delivery, from: number, to: number): boolean {
    const { deliveries, lanes } = this.#tables
    const consumer = lanes.consumer.at(deliveries.lane.at(delivery.row))
    return this.#lostPops[consumer]?.touch(from, to) ?? false
  }

  /** When a call was answered with success, by kind: in the order in which they were recorded. */
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

  #isTroubled(rows: Int32Array): boolean {
    const { attempt, lane } = this.#tables.deliveries
    for (let i = 0; i < rows.length; i += 1) {
      if (attempt.at(rows[i] as number) !== 1) return true
      for (let j = 0; j < i; j += 1) {
        if (lane.at(rows[i] as number) === lane.at(rows[j] as number)) return true
      }
    }
    return false
  }

  *#lostPopSpans(consumer: number): Iterable<Span> {
    for (const row of this.#popsOf.of(consumer)) {
      const pop = this.#pop(row)
      if (pop.outcome !== 'unknown') continue
      yield { from: pop.start, to: Math.min(pop.end, pop.start + pop.waitMs + unansweredPopMs) }
    }
  }

  #pop(row: number): Pop {
    const { calls, names, pops } = this.#tables
    const call = pops.call.at(row)
    return {
      process: names.textOf(calls.process.at(call)),
      start: calls.start.at(call),
      end: calls.end.at(call),
      outcome: textOf(outcomes, calls.outcome.at(call)),
      waitMs: pops.waitMs.at(row),
    }
  }

  #pushed(row: number): Pushed {
    const { calls, names, pushes } = this.#tables
    const call = pushes.call.at(row)
    const status = pushes.status.at(row)
    return {
      row,
      call,
      by: textOf(pushers, pushes.by.at(row)),
      process: names.textOf(calls.process.at(call)),
      start: calls.start.at(call),
      end: calls.end.at(call),
      outcome: textOf(outcomes, calls.outcome.at(call)),
      partition: names.textOf(pushes.partition.at(row)),
      key: pushes.key.at(row),
      delayMs: pushes.delayMs.at(row),
      status: status < 0 ? undefined : textOf(pushStatuses, status),
      id: pushes.id.at(row),
    }
  }

  #acked(row: number): Acked {
    const { calls, acks } = this.#tables
    const call = acks.call.at(row)
    return {
      call,
      start: calls.start.at(call),
      end: calls.end.at(call),
      status: textOf(ackStatuses, acks.status.at(row)),
      taken: textOf(takens, acks.taken.at(row)),
      transaction: this.#transactionCalls.has(call),
    }
  }
}
