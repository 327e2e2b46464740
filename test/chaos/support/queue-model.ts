// A correct queue in a few lines, and clients that only see of it what clients can see: answers come late or not at all.
// It makes histories in which no rule may fire, out of a list of choices (test-made, so that they can shrink).
import type {
  AckedItem,
  AuditRecord,
  HistoryRecord,
  Outcome,
  PoppedMessage,
  PushedItem,
} from '../records.ts'

interface Entry {
  readonly value: string
  readonly seq: number
  attempts: number
  state: 'fresh' | 'leased' | 'again' | 'done' | 'dead'
}

interface Lease {
  readonly lane: Lane
  readonly entries: Entry[]
  readonly wasFresh: boolean
  expiresAt: number
}

interface Lane {
  readonly partition: string
  readonly entries: Entry[]
  lease: Lease | undefined
}

interface Held {
  readonly message: PoppedMessage
  readonly entry: Entry
  readonly lease: Lease
  /** When its client heard of it. */
  readonly since: number
}

const leaseMs = 1_000
const retryLimit = 1
const statuses: readonly AckedItem['status'][] = [
  'completed',
  'completed',
  'completed',
  'failed',
  'retry',
]

export class QueueModel {
  readonly records: HistoryRecord[] = []
  readonly #choices: readonly number[]
  readonly #lanes: Lane[] = ['p', 'q'].map((partition) => ({
    partition,
    entries: [],
    lease: undefined,
  }))
  readonly #held: Held[] = []
  /** Leases that no durable commit followed yet: a crash may forget them. */
  readonly #volatile = new Set<Lease>()
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

  /** Lets things happen while there are choices, then works off what is left and looks into the tables. */
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

  /** A push is answered, or not, whether it counted or not; one that is unknown is sent again with its key. */
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
    const items = values.map((value): PushedItem => {
      const known = lane.entries.some((entry) => entry.value === value)
      if (counts && !known) {
        lane.entries.push({ value, seq: lane.entries.length + 1, attempts: 0, state: 'fresh' })
      }
      const status = known ? 'duplicate' : 'queued'
      const item = { queue: 'jobs', partition: lane.partition, value, key: value }
      return outcome === 'ok' ? { ...item, result: { status, id: `id ${value}` } } : item
    })
    if (counts) this.#volatile.clear()
    this.records.push({ kind: 'push', ...call, by: 'http', items })
  }

  #pop(): void {
    this.#popFrom(this.#anyLane(), 1 + this.#choose(4), this.#choose(6) > 0)
  }

  #popFrom(lane: Lane, batch: number, isHeard: boolean): Held[] {
    this.#expire(lane)
    const call = this.#call(isHeard ? 'ok' : 'unknown')
    const lease = this.#lease(lane, batch)
    const held = (lease?.entries ?? []).map((entry): Held => {
      const message = {
        queue: 'jobs',
        partition: lane.partition,
        partitionId: lane.partition,
        value: entry.value,
        id: `id ${entry.value}`,
        transactionId: entry.value,
        seq: String(entry.seq),
        attempt: entry.attempts,
        leaseId: `lease ${(this.#names += 1)}`,
      }
      return { message, entry, lease: lease as Lease, since: call.end }
    })
    const messages = isHeard ? held.map(({ message }) => message) : []
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
    if (isHeard) this.#held.push(...held)
    return held
  }

  /** One lease a lane; what comes again comes alone, in order, before anything fresh. */
  #lease(lane: Lane, batch: number): Lease | undefined {
    if (lane.lease !== undefined) return undefined
    const again = lane.entries.find(({ state }) => state === 'again')
    const fresh = lane.entries.filter(({ state }) => state === 'fresh').slice(0, batch)
    const entries = again === undefined ? fresh : [again]
    if (entries.length === 0) return undefined
    for (const entry of entries) {
      entry.state = 'leased'
      entry.attempts += 1
    }
    lane.lease = { lane, entries, wasFresh: again === undefined, expiresAt: this.#now + leaseMs }
    this.#volatile.add(lane.lease)
    return lane.lease
  }

  /** Zombies are welcome: any delivery of the past may be acknowledged, and is refused if its lease is over. */
  #ack(): void {
    const held = this.#anyHeld()
    if (held === undefined) return
    const status = statuses[this.#choose(statuses.length)] ?? 'completed'
    const isHeard = this.#choose(5) > 0
    this.#ackOne(held, status, isHeard, isHeard || this.#choose(2) === 0)
  }

  #ackOne(held: Held, status: AckedItem['status'], isHeard: boolean, reaches: boolean): void {
    const call = this.#call(isHeard ? 'ok' : 'unknown', held.since)
    const success = reaches && this.#end(held, status)
    const { leaseId, transactionId, partitionId, value } = held.message
    const ack = { leaseId, transactionId, partitionId, value, status }
    this.records.push({
      kind: 'ack',
      ...call,
      group: 'g',
      acks: [isHeard ? { ...ack, success } : ack],
    })
  }

  #end({ lease, entry }: Held, status: AckedItem['status']): boolean {
    const { lane } = lease
    this.#expire(lane)
    if (lane.lease !== lease || !lease.entries.includes(entry)) return false
    lease.entries.splice(lease.entries.indexOf(entry), 1)
    if (status === 'completed') entry.state = 'done'
    else if (status === 'failed' && entry.attempts > retryLimit) entry.state = 'dead'
    else entry.state = 'again'
    if (status === 'retry') entry.attempts -= 1
    if (lease.entries.length === 0) lane.lease = undefined
    this.#volatile.clear()
    return true
  }

  #release(): void {
    const held = this.#anyHeld()
    if (held === undefined) return
    const { lease, message } = held
    const call = this.#call(this.#choose(4) > 0 ? 'ok' : 'unknown', held.since)
    this.#expire(lease.lane)
    if (lease.lane.lease === lease) {
      for (const entry of lease.entries) {
        entry.state = 'again'
        entry.attempts -= 1
      }
      lease.lane.lease = undefined
      this.#volatile.clear()
      this.records.push({ kind: 'release', ...call, leaseId: message.leaseId })
    } else {
      this.records.push({ kind: 'release', ...call, outcome: 'fail', leaseId: message.leaseId })
    }
  }

  #extend(): void {
    const held = this.#anyHeld()
    if (held === undefined) return
    const { lease, message } = held
    const call = this.#call('ok', held.since)
    this.#expire(lease.lane)
    const outcome = lease.lane.lease === lease ? 'ok' : 'fail'
    if (outcome === 'ok') {
      lease.expiresAt = Math.max(lease.expiresAt, this.#now + 2_000)
      this.#volatile.clear()
    }
    this.records.push({ kind: 'extend', ...call, outcome, leaseId: message.leaseId, seconds: 2 })
  }

  /** The newest leases are forgotten, as if they had never been. */
  #crash(): void {
    for (const lease of this.#volatile) {
      if (lease.lane.lease !== lease) continue
      for (const entry of lease.entries) {
        entry.state = lease.wasFresh ? 'fresh' : 'again'
        entry.attempts -= 1
      }
      lease.lane.lease = undefined
    }
    this.#volatile.clear()
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

  #expire(lane: Lane): void {
    const { lease } = lane
    if (lease === undefined || lease.expiresAt > this.#now) return
    for (const entry of lease.entries) entry.state = entry.attempts > retryLimit ? 'dead' : 'again'
    lane.lease = undefined
    this.#volatile.clear()
  }

  #drain(): void {
    for (const lane of this.#lanes) {
      while (lane.entries.some(({ state }) => state !== 'done' && state !== 'dead')) {
        this.#pass(200)
        for (const held of this.#popFrom(lane, 10, true)) {
          this.#pass(60)
          this.#ackOne(held, 'completed', true, true)
        }
      }
    }
  }

  #audit(): AuditRecord {
    const dead = this.#lanes.flatMap(({ entries }) =>
      entries.filter(({ state }) => state === 'dead'),
    )
    return {
      kind: 'audit',
      undrained: [],
      leases: 0,
      scheduled: 0,
      contradictions: [],
      deadLetters: dead.map(({ value, attempts }) => ({
        queue: 'jobs',
        group: 'g',
        value,
        attempts,
      })),
    }
  }

  /** It happens now; its client asked a little before and hears a little later. */
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
    return this.#lanes[this.#choose(this.#lanes.length)] as Lane
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
