// Turns rows of the history's tables into objects: a message with its pushes and deliveries, a delivery with
// the bounds of its lease and its acks. The objects are made on demand, because there are too many to keep.
import { Column, mapRows, RowsByKey } from './columns.ts'
import {
  ackStatuses,
  type HistoryTables,
  outcomes,
  pushers,
  pushStatuses,
  takens,
  textOf,
} from './history-tables.ts'
import type {
  Acked,
  Delivery,
  Lane,
  Message,
  Pop,
  PushCall,
  Pushed,
  Transaction,
} from './history-views.ts'
import { type LeaseBounds, leaseBounds } from './lease-bounds.ts'
import type { Operations } from './operations.ts'
import type { Windows } from './windows.ts'

export class HistoryRows {
  readonly #tables: HistoryTables
  readonly #bounds: LeaseBounds
  readonly #pushesOf: RowsByKey
  readonly #deliveriesOf: RowsByKey
  readonly #deliveriesInLane: RowsByKey
  readonly #acksOf: RowsByKey
  readonly #ackDeliveries: Column
  readonly #transactionCalls: ReadonlySet<number>

  constructor(tables: HistoryTables, faulty: Windows, operations: Operations) {
    this.#tables = tables
    this.#transactionCalls = new Set(tables.transactionCalls)
    const { deliveries, pushes, acks, messages, lanes } = tables
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
    this.#acksOf = new RowsByKey(this.#ackDeliveries, deliveries.message.length)
    this.#bounds = leaseBounds(tables, deliveryOfLease, { faulty, operations })
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

  /** Whether a group got the message more than once, or with an attempt number other than 1. */
  isRedelivered(message: number): boolean {
    const rows = this.#deliveriesOf.of(message)
    const { attempt, lane } = this.#tables.deliveries
    for (let i = 0; i < rows.length; i += 1) {
      if (attempt.at(rows[i] as number) !== 1) return true
      for (let j = 0; j < i; j += 1) {
        if (lane.at(rows[i] as number) === lane.at(rows[j] as number)) return true
      }
    }
    return false
  }

  lane(row: number): Lane {
    const { names, lanes, consumers } = this.#tables
    const consumer = lanes.consumer.at(row)
    return {
      queue: names.textOf(consumers.queue.at(consumer)),
      group: names.textOf(consumers.group.at(consumer)),
      partition: names.textOf(lanes.partition.at(row)),
      deliveries: mapRows(this.#deliveriesInLane.of(row), (delivery) => this.delivery(delivery)),
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

  *pushCalls(): Iterable<PushCall> {
    const { calls, names, pushes, messages } = this.#tables
    for (let row = 0; row < pushes.call.length; ) {
      const first = row
      const call = pushes.call.at(row)
      const queues = new Set<string>()
      // The items of a call are in consecutive rows.
      for (; row < pushes.call.length && pushes.call.at(row) === call; row += 1) {
        queues.add(names.textOf(messages.queue.at(pushes.message.at(row))))
      }
      yield {
        process: names.textOf(calls.process.at(call)),
        start: calls.start.at(call),
        end: calls.end.at(call),
        outcome: textOf(outcomes, calls.outcome.at(call)),
        by: textOf(pushers, pushes.by.at(first)),
        items: row - first,
        queues: [...queues],
      }
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

  pop(row: number): Pop {
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
