// Histories told by hand, for the tests of the checkers: who said what when, in milliseconds. Whatever a step does not say
// is as in a correct queue: ids and seqs follow the pushes, attempts count up, every call takes 2 ms and is answered ok.
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

interface Told {
  readonly at: number
  readonly took?: number
  readonly outcome?: Outcome
  readonly process?: string
}

export interface PushTold extends Told {
  readonly queue?: string
  readonly partition?: string
  readonly id?: string
  readonly status?: 'queued' | 'duplicate' | 'scheduled'
  readonly key?: string
  readonly delayMs?: number
  readonly amount?: number
  readonly by?: 'http' | 'sql'
}

export interface PopTold extends Told {
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

export interface AckTold extends Told {
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

  /** `jobs` is there from the start: ordered, one group `g`, four deliveries at most. */
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

  push(values: string | readonly string[], told: PushTold): this {
    const items = [values].flat().map((value) => this.#item(value, told))
    this.records.push({ kind: 'push', ...call(told), by: told.by ?? 'http', items })
    return this
  }

  /** Answers the deliveries, to be acknowledged. */
  pop(values: string | readonly string[], told: PopTold): PoppedMessage[] {
    const messages = [values].flat().map((value) => this.#message(value, told))
    this.records.push({
      kind: 'pop',
      ...call(told),
      queue: told.queue ?? 'jobs',
      group: told.group ?? 'g',
      waitMs: told.waitMs ?? 0,
      leaseMs: told.leaseMs ?? leaseMs,
      messages,
      acks: [],
    })
    return messages
  }

  ack(messages: readonly PoppedMessage[], told: AckTold): this {
    this.records.push({
      kind: 'ack',
      ...call(told),
      group: told.group ?? 'g',
      acks: this.#acks(messages, told),
    })
    return this
  }

  /** Acknowledges and pushes, or neither. */
  transaction(
    messages: readonly PoppedMessage[],
    pushes: readonly (Partial<PushTold> & { readonly value: string })[],
    told: AckTold,
  ): this {
    this.records.push({
      kind: 'ack',
      ...call(told),
      group: told.group ?? 'g',
      acks: this.#acks(messages, told),
      pushes: pushes.map((push) =>
        this.#item(push.value, { at: told.at, outcome: told.outcome ?? 'ok', ...push }),
      ),
    })
    return this
  }

  extend([message]: readonly PoppedMessage[], seconds: number, told: Told): this {
    if (message !== undefined)
      this.records.push({ kind: 'extend', ...call(told), leaseId: message.leaseId, seconds })
    return this
  }

  release([message]: readonly PoppedMessage[], told: Told): this {
    if (message !== undefined)
      this.records.push({ kind: 'release', ...call(told), leaseId: message.leaseId })
    return this
  }

  /** A purge, a seek, a redrive, or a group that subscribes. */
  operation(
    kind: OperatorRecord['kind'],
    told: Told & Partial<Pick<OperatorRecord, 'queue' | 'group' | 'from'>>,
  ): this {
    const { queue = 'jobs', group, from } = told
    this.records.push({
      kind,
      ...call(told),
      queue,
      ...(group === undefined ? {} : { group }),
      ...(from === undefined ? {} : { from }),
    })
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

  #item(value: string, told: PushTold): PushedItem {
    const { queue = 'jobs', partition = 'p', key, delayMs, amount } = told
    const place = `${queue}/${partition}/${value}`
    if (!this.#seqs.has(place)) {
      const head = (this.#heads.get(`${queue}/${partition}`) ?? 0) + 1
      this.#heads.set(`${queue}/${partition}`, head)
      this.#seqs.set(place, head)
    }
    const status = told.status ?? (delayMs === undefined ? 'queued' : 'scheduled')
    return {
      queue,
      partition,
      value,
      ...(key === undefined ? {} : { key }),
      ...(delayMs === undefined ? {} : { delayMs }),
      ...(amount === undefined ? {} : { amount }),
      ...((told.outcome ?? 'ok') === 'ok'
        ? { result: { status, id: told.id ?? `id ${value}` } }
        : {}),
    }
  }

  #message(value: string, told: PopTold): PoppedMessage {
    const { queue = 'jobs', partition = 'p', group = 'g', amount } = told
    const counted = `${queue}/${group}/${value}`
    const attempt = told.attempt ?? (this.#attempts.get(counted) ?? 0) + 1
    this.#attempts.set(counted, attempt)
    this.#leases += 1
    return {
      queue,
      partition,
      partitionId: partition,
      value,
      id: told.id ?? `id ${value}`,
      transactionId: `t ${value}`,
      seq: String(told.seq ?? this.#seqs.get(`${queue}/${partition}/${value}`) ?? 999),
      attempt,
      leaseId: `lease ${this.#leases}`,
      ...(amount === undefined ? {} : { amount }),
    }
  }

  #acks(messages: readonly PoppedMessage[], told: AckTold): AckedItem[] {
    const success = told.success ?? ((told.outcome ?? 'ok') === 'ok' ? true : undefined)
    return messages.map(({ leaseId, transactionId, partitionId, value }) => ({
      leaseId,
      transactionId,
      partitionId,
      value,
      status: told.status ?? 'completed',
      ...(success === undefined ? {} : { success }),
    }))
  }
}

function call({ at, took = 2, outcome = 'ok', process = 'client' }: Told) {
  return { process, workload: 'plain', start: at, end: at + took, outcome }
}
