// Builds histories by hand for the tests of the checkers, in milliseconds. Fields that a step leaves out are
// as in a correct queue: ids and seqs follow the pushes, attempts count up, and every call takes 2 ms and is
// ok.
import { History } from '../history/history.ts'
import type {
  AckedItem,
  AuditRecord,
  FaultRecord,
  HistoryRecord,
  OperatorRecord,
  Outcome,
  PoppedMessage,
  PushedItem,
  QueueRecord,
} from '../history/records.ts'

interface Step {
  readonly at: number
  readonly took?: number
  readonly outcome?: Outcome
  readonly process?: string
}

export interface PushStep extends Step {
  readonly queue?: string
  readonly partition?: string
  readonly id?: string
  readonly status?: 'queued' | 'duplicate' | 'scheduled'
  readonly key?: string
  readonly delayMs?: number
  readonly amount?: number
  readonly by?: 'http' | 'sql'
}

export interface PopStep extends Step {
  readonly queue?: string
  readonly group?: string
  readonly partition?: string
  readonly waitMs?: number
  readonly leaseMs?: number
  readonly attempt?: number
  readonly id?: string
  readonly seq?: number
  readonly amount?: number
}

export interface AckStep extends Step {
  readonly group?: string
  readonly status?: AckedItem['status']
  readonly success?: boolean
}

export const leaseMs = 3_000

export class Story {
  readonly records: HistoryRecord[] = []
  readonly #seqs = new Map<string, number>()
  readonly #heads = new Map<string, number>()
  readonly #attempts = new Map<string, number>()
  #leases = 0

  /** Starts with the queue `jobs`: ordered, one group `g`, at most four deliveries. */
  constructor() {
    this.queue({})
  }

  queue(facts: Partial<QueueRecord>): this {
    this.records.push({
      kind: 'queue',
      queue: 'jobs',
      workload: 'plain',
      ordering: 'partition',
      groups: ['g'],
      retryLimit: 3,
      dedupWindowMs: 60_000,
      ...facts,
    })
    return this
  }

  push(values: string | readonly string[], step: PushStep): this {
    const items = [values].flat().map((value) => this.#item(value, step))
    this.records.push({ kind: 'push', ...call(step), by: step.by ?? 'http', items })
    return this
  }

  /** Returns the deliveries, to pass to `ack`. */
  pop(values: string | readonly string[], step: PopStep): PoppedMessage[] {
    const messages = [values].flat().map((value) => this.#message(value, step))
    this.records.push({
      kind: 'pop',
      ...call(step),
      queue: step.queue ?? 'jobs',
      group: step.group ?? 'g',
      waitMs: step.waitMs ?? 0,
      leaseMs: step.leaseMs ?? leaseMs,
      messages,
      acks: [],
    })
    return messages
  }

  ack(messages: readonly PoppedMessage[], step: AckStep): this {
    this.records.push({
      kind: 'ack',
      ...call(step),
      group: step.group ?? 'g',
      acks: this.#acks(messages, step),
    })
    return this
  }

  /** Acknowledges and pushes in one transaction. */
  transaction(
    messages: readonly PoppedMessage[],
    pushes: readonly (Partial<PushStep> & { readonly value: string })[],
    step: AckStep,
  ): this {
    this.records.push({
      kind: 'ack',
      ...call(step),
      group: step.group ?? 'g',
      acks: this.#acks(messages, step),
      pushes: pushes.map((push) =>
        this.#item(push.value, { at: step.at, outcome: step.outcome ?? 'ok', ...push }),
      ),
    })
    return this
  }

  /** `lastsMs`: how long the lease lasts by the answer, if that is less than was requested. */
  extend(
    [message]: readonly PoppedMessage[],
    seconds: number,
    { lastsMs = seconds * 1_000, ...step }: Step & { readonly lastsMs?: number },
  ): this {
    if (message === undefined) return this
    const { receipt } = message
    this.records.push({ kind: 'extend', ...call(step), receipt, seconds, lastsMs })
    return this
  }

  release([message]: readonly PoppedMessage[], step: Step): this {
    if (message !== undefined)
      this.records.push({ kind: 'release', ...call(step), receipt: message.receipt })
    return this
  }

  /** A purge, a seek, a redrive, or a group that subscribes. */
  operation(
    kind: OperatorRecord['kind'],
    step: Step & Partial<Pick<OperatorRecord, 'queue' | 'group' | 'from'>>,
  ): this {
    const { queue = 'jobs', group, from } = step
    this.records.push({
      kind,
      ...call(step),
      queue,
      ...(group === undefined ? {} : { group }),
      ...(from === undefined ? {} : { from }),
    })
    return this
  }

  cancel(value: string, step: Step): this {
    this.records.push({ kind: 'cancel', ...call(step), id: `id ${value}` })
    return this
  }

  fault(start: number, end: number, fault: Partial<FaultRecord> = {}): this {
    this.records.push({
      kind: 'fault',
      name: 'node-kill',
      target: 'node-1',
      forgetsLeases: false,
      ...fault,
      start,
      end,
    })
    return this
  }

  audit(found: Partial<AuditRecord> = {}): this {
    this.records.push({
      kind: 'audit',
      undrained: [],
      leases: 0,
      scheduled: 0,
      deadLetters: [],
      contradictions: [],
      ...found,
    })
    return this
  }

  history(): History {
    if (!this.records.some(({ kind }) => kind === 'audit')) this.audit()
    return History.of(this.records)
  }

  #item(value: string, step: PushStep): PushedItem {
    const { queue = 'jobs', partition = 'p', key, delayMs, amount } = step
    const place = `${queue}/${partition}/${value}`
    if (!this.#seqs.has(place)) {
      const head = (this.#heads.get(`${queue}/${partition}`) ?? 0) + 1
      this.#heads.set(`${queue}/${partition}`, head)
      this.#seqs.set(place, head)
    }
    const status = step.status ?? (delayMs === undefined ? 'queued' : 'scheduled')
    return {
      queue,
      partition,
      value,
      ...(key === undefined ? {} : { key }),
      ...(delayMs === undefined ? {} : { delayMs }),
      ...(amount === undefined ? {} : { amount }),
      ...((step.outcome ?? 'ok') === 'ok'
        ? { result: { status, id: step.id ?? `id ${value}` } }
        : {}),
    }
  }

  #message(value: string, step: PopStep): PoppedMessage {
    const { queue = 'jobs', partition = 'p', group = 'g', amount } = step
    const counted = `${queue}/${group}/${value}`
    const attempt = step.attempt ?? (this.#attempts.get(counted) ?? 0) + 1
    this.#attempts.set(counted, attempt)
    this.#leases += 1
    return {
      queue,
      partition,
      partitionId: partition,
      value,
      id: step.id ?? `id ${value}`,
      transactionId: `t ${value}`,
      seq: String(step.seq ?? this.#seqs.get(`${queue}/${partition}/${value}`) ?? 999),
      attempt,
      receipt: `receipt ${this.#leases}`,
      leaseId: `lease ${this.#leases}`,
      ...(amount === undefined ? {} : { amount }),
    }
  }

  #acks(messages: readonly PoppedMessage[], step: AckStep): AckedItem[] {
    const success = step.success ?? ((step.outcome ?? 'ok') === 'ok' ? true : undefined)
    return messages.map(({ receipt, transactionId, partitionId, value }) => ({
      receipt,
      transactionId,
      partitionId,
      value,
      status: step.status ?? 'completed',
      ...(success === undefined ? {} : { success }),
    }))
  }
}

function call({ at, took = 2, outcome = 'ok', process = 'client' }: Step) {
  return { process, workload: 'plain', start: at, end: at + took, outcome }
}
