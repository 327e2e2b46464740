// The columns that records are read into: one row per call, pushed item, pop, delivery and ack. Names are
// replaced by numbers. Ids and lease tokens are only compared, so their text is not kept.
import { Column, Names } from './columns.ts'
import type {
  AckedItem,
  AuditRecord,
  CallRecord,
  CancelRecord,
  FaultRecord,
  HistoryRecord,
  LeaseRecord,
  OperatorRecord,
  Outcome,
  PopRecord,
  PushedItem,
  QueueRecord,
} from './records.ts'

export const outcomes: readonly Outcome[] = ['ok', 'fail', 'unknown']
export const pushers = ['http', 'sql', 'transaction'] as const
export const pushStatuses = ['queued', 'duplicate', 'scheduled'] as const
export const ackStatuses: readonly AckedItem['status'][] = ['completed', 'failed', 'retry', 'dlq']
export const takens = ['yes', 'no', 'unknown'] as const

/** The text that a number in one of these columns stands for. */
export function textOf<Text>(texts: readonly Text[], number: number): Text {
  const text = texts[number]
  if (text === undefined) throw new RangeError(`no text for number ${number}`)
  return text
}

/** A message that was cancelled, or may have been: when it certainly was; Infinity if that is not known. */
export interface Cancel {
  readonly doneAt: number
}

export class HistoryTables {
  readonly names = new Names()
  readonly values = new Names()
  readonly calls = columns(['process', 'outcome'], ['start', 'end'])
  readonly pushes = columns(
    ['call', 'message', 'by', 'partition', 'key', 'status', 'id'],
    ['delayMs'],
  )
  readonly pops = columns(['call', 'consumer'], ['waitMs', 'leaseMs'])
  readonly deliveries = columns(
    ['message', 'pop', 'lane', 'id', 'attempt', 'lease'],
    ['seq', 'amount'],
  )
  readonly acks = columns(['call', 'lease', 'status', 'taken'], [])
  readonly messages = columns(['queue'], [])
  readonly lanes = columns(['consumer', 'partition'], [])
  readonly consumers = columns(['queue', 'group'], [])
  readonly transactionCalls: number[] = []
  readonly leaseCalls: { readonly lease: number; readonly record: LeaseRecord }[] = []
  readonly operations: OperatorRecord[] = []
  /** By the number of the message's id. Refused ones are left out. */
  readonly cancels = new Map<number, Cancel>()
  readonly queues = new Map<string, QueueRecord>()
  readonly faults: FaultRecord[] = []
  audit: AuditRecord | undefined
  #ids = new Names()
  #leases = new Names()
  readonly #laneNames = new Names()
  readonly #consumerNames = new Names()

  get leaseCount(): number {
    return this.#leases.length
  }

  add(record: HistoryRecord): void {
    switch (record.kind) {
      case 'fault':
        this.faults.push(record)
        return
      case 'audit':
        this.audit = record
        return
      case 'queue':
        this.queues.set(record.queue, record)
        return
      case 'extend':
      case 'release':
        this.leaseCalls.push({ lease: this.#leases.numberOf(record.receipt), record })
        return
      case 'purge':
      case 'seek':
      case 'redrive':
      case 'subscribe':
        this.operations.push(record)
        return
      case 'cancel':
        this.#addCancel(record)
        return
      case 'push':
        this.#addPushes(this.#addCall(record), record.items, pushers.indexOf(record.by))
        return
      case 'pop': {
        const call = this.#addCall(record)
        this.#addPop(call, record)
        this.#addAcks(call, record, record.acks)
        return
      }
      case 'ack': {
        const call = this.#addCall(record)
        this.#addAcks(call, record, record.acks)
        if (record.pushes === undefined) return
        this.transactionCalls.push(call)
        this.#addPushes(call, record.pushes, pushers.indexOf('transaction'))
        return
      }
      default:
        record satisfies never
    }
  }

  /** Call this once all records are added; it drops the texts of ids and tokens. */
  dropTexts(): void {
    this.#ids = new Names()
    this.#leases = new Names()
  }

  #addCall(record: CallRecord): number {
    this.calls.process.push(this.names.numberOf(record.process))
    this.calls.outcome.push(outcomes.indexOf(record.outcome))
    this.calls.start.push(record.start)
    return this.calls.end.push(record.end)
  }

  #addPushes(call: number, items: readonly PushedItem[], by: number): void {
    for (const item of items) {
      this.pushes.call.push(call)
      this.pushes.message.push(this.#messageOf(item.queue, item.value))
      this.pushes.by.push(by)
      this.pushes.partition.push(this.names.numberOf(item.partition))
      this.pushes.key.push(item.key === undefined ? -1 : this.#ids.numberOf(item.key))
      this.pushes.delayMs.push(item.delayMs ?? 0)
      this.pushes.status.push(
        item.result === undefined ? -1 : pushStatuses.indexOf(item.result.status),
      )
      this.pushes.id.push(item.result === undefined ? -1 : this.#ids.numberOf(item.result.id))
    }
  }

  #addCancel({ id, outcome, end }: CancelRecord): void {
    if (outcome === 'fail') return
    const number = this.#ids.numberOf(id)
    const doneAt = outcome === 'ok' ? end : Number.POSITIVE_INFINITY
    const before = this.cancels.get(number)?.doneAt ?? Number.POSITIVE_INFINITY
    this.cancels.set(number, { doneAt: Math.min(doneAt, before) })
  }

  #addPop(call: number, record: PopRecord): void {
    this.pops.call.push(call)
    this.pops.waitMs.push(record.waitMs)
    this.pops.leaseMs.push(record.leaseMs)
    const pop = this.pops.consumer.push(this.#consumerOf(record.queue, record.group))
    for (const message of record.messages) {
      this.deliveries.message.push(this.#messageOf(message.queue, message.value))
      this.deliveries.pop.push(pop)
      this.deliveries.lane.push(this.#laneOf(message.queue, record.group, message.partition))
      this.deliveries.id.push(this.#ids.numberOf(message.id))
      this.deliveries.attempt.push(message.attempt)
      this.deliveries.lease.push(this.#leases.numberOf(message.receipt))
      this.deliveries.seq.push(Number(message.seq))
      this.deliveries.amount.push(message.amount ?? 0)
    }
  }

  #addAcks(call: number, { outcome }: CallRecord, acks: readonly AckedItem[]): void {
    if (outcome === 'fail') return
    for (const ack of acks) {
      this.acks.call.push(call)
      this.acks.lease.push(this.#leases.numberOf(ack.receipt))
      this.acks.status.push(ackStatuses.indexOf(ack.status))
      const taken =
        outcome === 'unknown' || ack.success === undefined ? 'unknown' : ack.success ? 'yes' : 'no'
      this.acks.taken.push(takens.indexOf(taken))
    }
  }

  #messageOf(queue: string, value: string): number {
    const queueNumber = this.names.numberOf(queue)
    const message = this.values.numberOf(`${queueNumber}/${value}`)
    if (message === this.messages.queue.length) this.messages.queue.push(queueNumber)
    return message
  }

  #consumerOf(queue: string, group: string): number {
    const consumer = this.#consumerNames.numberOf(JSON.stringify([queue, group]))
    if (consumer === this.consumers.queue.length) {
      this.consumers.queue.push(this.names.numberOf(queue))
      this.consumers.group.push(this.names.numberOf(group))
    }
    return consumer
  }

  #laneOf(queue: string, group: string, partition: string): number {
    const lane = this.#laneNames.numberOf(JSON.stringify([queue, group, partition]))
    if (lane === this.lanes.consumer.length) {
      this.lanes.consumer.push(this.#consumerOf(queue, group))
      this.lanes.partition.push(this.names.numberOf(partition))
    }
    return lane
  }
}

function columns<Integer extends string, Float extends string>(
  integers: readonly Integer[],
  floats: readonly Float[],
): Readonly<Record<Integer | Float, Column>> {
  return Object.fromEntries([
    ...integers.map((name) => [name, new Column('integer')] as const),
    ...floats.map((name) => [name, new Column('float')] as const),
  ]) as Record<Integer | Float, Column>
}
