// Simulated clients of a correct queue, which see only what real clients see: responses are late or missing.
// They produce histories that break no rule, from a list of choices that the test can shrink.
import type {
  AckedItem,
  AuditRecord,
  HistoryRecord,
  Outcome,
  PoppedMessage,
  PushedItem,
} from '../history/records.ts'
import {
  CorrectQueue,
  type Entry,
  type Lane,
  type Lease,
  leaseMs,
  retryLimit,
} from './correct-queue.ts'

interface Held {
  readonly message: PoppedMessage
  readonly entry: Entry
  readonly lease: Lease
  /** When the client got the message. */
  readonly since: number
}

const statuses: readonly AckedItem['status'][] = [
  'completed',
  'completed',
  'completed',
  'failed',
  'retry',
]

export class QueueModel {
  readonly records: HistoryRecord[] = []
  readonly #queue = new CorrectQueue()
  readonly #choices: readonly number[]
  readonly #held: Held[] = []
  #next = 0
  #now = 0
  #names = 0

  constructor(choices: readonly number[]) {
    this.#choices = choices
    this.records.push({
      kind: 'queue',
      queue: 'jobs',
      workload: 'model',
      ordering: 'partition',
      groups: ['g'],
      retryLimit,
      dedupWindowMs: 3_600_000,
    })
  }

  /** Takes steps while there are choices, then drains the queue and audits it. */
  run(): HistoryRecord[] {
    const steps = [
      () => this.#push(),
      () => this.#push(),
      () => this.#pop(),
      () => this.#pop(),
      () => this.#ack(),
      () => this.#ack(),
      () => this.#release(),
      () => this.#extend(),
      () => this.#crash(),
      () => this.#pass(this.#choose(2 * leaseMs)),
    ]
    while (this.#next < this.#choices.length) {
      this.#pass(1 + this.#choose(100))
      steps[this.#choose(steps.length)]?.()
    }
    this.#drain()
    this.records.push(this.#audit())
    return this.records
  }

  /** A push may be stored or not, and answered or not; a push of unknown outcome is repeated with its key. */
  #push(): void {
    const lane = this.#anyLane()
    const values = Array.from({ length: 1 + this.#choose(3) }, () => `m${(this.#names += 1)}`)
    const fate = this.#choose(6)
    if (fate === 0) this.#recordPush(lane, values, 'fail', false)
    if (fate === 1) this.#recordPush(lane, values, 'unknown', false)
    if (fate === 2) this.#recordPush(lane, values, 'unknown', true)
    if (fate > 0) this.#recordPush(lane, values, 'ok', true)
  }

  #recordPush(lane: Lane, values: readonly string[], outcome: Outcome, counts: boolean): void {
    const call = this.#call(outcome)
    const results = counts ? this.#queue.push(lane, values) : []
    const items = values.map((value, i): PushedItem => {
      const item = { queue: 'jobs', partition: lane.partition, value, key: value }
      const status = results[i]
      return outcome === 'ok' && status !== undefined
        ? { ...item, result: { status, id: `id ${value}` } }
        : item
    })
    this.records.push({ kind: 'push', ...call, by: 'http', items })
  }

  #pop(): void {
    this.#popFrom(this.#anyLane(), 1 + this.#choose(4), this.#choose(6) > 0)
  }

  #popFrom(lane: Lane, batch: number, isAnswered: boolean): Held[] {
    const call = this.#call(isAnswered ? 'ok' : 'unknown')
    const lease = this.#queue.pop(lane, batch, this.#now)
    const held = lease === undefined ? [] : this.#holdAll(lease, call.end)
    const messages = isAnswered ? held.map(({ message }) => message) : []
    this.records.push({
      kind: 'pop',
      ...call,
      queue: 'jobs',
      group: 'g',
      waitMs: 0,
      leaseMs,
      messages,
      acks: [],
    })
    if (isAnswered) this.#held.push(...held)
    return held
  }

  #holdAll(lease: Lease, since: number): Held[] {
    const { partition } = lease.lane
    return lease.entries.map((entry) => {
      const message = {
        queue: 'jobs',
        partition,
        partitionId: partition,
        value: entry.value,
        id: `id ${entry.value}`,
        transactionId: entry.value,
        seq: String(entry.seq),
        attempt: entry.attempts,
        receipt: `receipt ${(this.#names += 1)}`,
        leaseId: `lease ${this.#names}`,
      }
      return { message, entry, lease, since }
    })
  }

  /**
   * Includes late acks: any earlier delivery may be acknowledged, and the ack is refused if the lease is
   * over.
   */
  #ack(): void {
    const held = this.#anyHeld()
    if (held === undefined) return
    const status = statuses[this.#choose(statuses.length)] ?? 'completed'
    const isAnswered = this.#choose(5) > 0
    this.#ackOne(held, status, isAnswered, isAnswered || this.#choose(2) === 0)
  }

  #ackOne(held: Held, status: AckedItem['status'], isAnswered: boolean, reaches: boolean): void {
    const call = this.#call(isAnswered ? 'ok' : 'unknown', held.since)
    const success = reaches && this.#queue.acknowledge(held.lease, held.entry, status, this.#now)
    const { receipt, transactionId, partitionId, value } = held.message
    const ack = { receipt, transactionId, partitionId, value, status }
    this.records.push({
      kind: 'ack',
      ...call,
      group: 'g',
      acks: [isAnswered ? { ...ack, success } : ack],
    })
  }

  #release(): void {
    const held = this.#anyHeld()
    if (held === undefined) return
    const call = this.#call(this.#choose(4) > 0 ? 'ok' : 'unknown', held.since)
    const outcome = this.#queue.release(held.lease, this.#now) ? call.outcome : 'fail'
    this.records.push({ kind: 'release', ...call, outcome, receipt: held.message.receipt })
  }

  #extend(): void {
    const held = this.#anyHeld()
    if (held === undefined) return
    const call = this.#call('ok', held.since)
    const outcome = this.#queue.extend(held.lease, 2_000, this.#now) ? 'ok' : 'fail'
    const { receipt } = held.message
    this.records.push({ kind: 'extend', ...call, outcome, receipt, seconds: 2 })
  }

  #crash(): void {
    this.#queue.crash()
    const [start, end] = [this.#now - this.#choose(20), this.#now + this.#choose(50)]
    this.records.push({
      kind: 'fault',
      name: 'postgres-kill',
      target: 'it',
      forgetsLeases: true,
      start,
      end,
    })
    this.#pass(end - this.#now)
  }

  #drain(): void {
    for (const lane of this.#queue.lanes) {
      while (!this.#queue.isDrained(lane)) {
        this.#pass(200)
        for (const held of this.#popFrom(lane, 10, true)) {
          this.#pass(60)
          this.#ackOne(held, 'completed', true, true)
        }
      }
    }
  }

  #audit(): AuditRecord {
    return {
      kind: 'audit',
      undrained: [],
      leases: 0,
      scheduled: 0,
      contradictions: [],
      deadLetters: this.#queue.dead().map(({ value, attempts }) => ({
        queue: 'jobs',
        group: 'g',
        value,
        attempts,
      })),
    }
  }

  /** The call takes effect now; its client sent it slightly earlier and gets the response slightly later. */
  #call(outcome: Outcome, notBefore = 0) {
    const start = Math.max(notBefore, this.#now - this.#choose(40))
    const end = Math.max(this.#now, start) + this.#choose(40)
    this.#now = Math.max(this.#now, start)
    return { process: `c${(this.#names += 1)}`, workload: 'model', start, end, outcome }
  }

  #pass(ms: number): void {
    this.#now += ms
  }

  #anyLane(): Lane {
    const { lanes } = this.#queue
    return lanes[this.#choose(lanes.length)] as Lane
  }

  #anyHeld(): Held | undefined {
    const recent = this.#held.slice(-6)
    return recent[this.#choose(recent.length)]
  }

  #choose(below: number): number {
    const choice = this.#choices[this.#next] ?? 0
    this.#next += 1
    return below === 0 ? 0 : choice % below
  }
}
