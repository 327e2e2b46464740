// One lane of one group in memory, as docs/storage.md defines it, without SQL. The algebra test
// makes the same calls here and in PostgreSQL and compares every result.

export interface LaneRules {
  readonly ordering: 'partition' | 'none'
  readonly onFailure: 'hold' | 'skip'
  readonly retryLimit: number
  readonly backoffMs: readonly number[]
}

export interface ModelLease {
  readonly to: number
  readonly attempt: number
  readonly seqs: readonly number[]
  held: Set<number>
  expiresAt: number
}

interface Redelivery {
  readonly attempt: number
  readonly alone: boolean
  readonly due: number
  announced: boolean
}

export type Outcome = 'completed' | 'failed' | 'retry' | 'dlq'

export class LaneModel {
  now = 0
  head = 1
  next = 1
  blockedUntil: number | undefined
  readonly again = new Map<number, Redelivery>()
  readonly live = new Set<ModelLease>()
  readonly dead: number[] = []
  readonly completed: number[] = []
  readonly #rules: LaneRules

  constructor(rules: LaneRules) {
    this.#rules = rules
  }

  get #ordered(): boolean {
    return this.#rules.ordering === 'partition'
  }

  get #holds(): boolean {
    return this.#ordered && this.#rules.onFailure === 'hold'
  }

  push(count: number): void {
    this.head += count
  }

  pop(batch: number, leaseMs: number): ModelLease | undefined {
    if (this.blockedUntil !== undefined || (this.#ordered && this.live.size > 0)) return undefined
    const waiting = this.#waiting()
    const [first] = waiting
    if (first !== undefined && this.#holds && !first[1].announced && first[1].due > this.now) {
      this.blockedUntil = first[1].due
      return undefined
    }
    const candidates = this.#holds ? waiting : waiting.filter(([, entry]) => entry.announced)
    if (candidates.length > 0) return this.#deliverAgain(candidates, batch, leaseMs)
    const count = Math.min(batch, this.head - this.next)
    if (count === 0) return undefined
    const seqs = Array.from({ length: count }, (_, i) => this.next + i)
    this.next += count
    return this.#lease(seqs, 1, leaseMs)
  }

  /** Ends an attempt: `no` if the lease does not hold the message, `dead` if it became a dead letter. */
  end(lease: ModelLease, seq: number, outcome: Outcome, delayMs?: number): 'no' | 'yes' | 'dead' {
    if (!this.#valid(lease) || !lease.held.delete(seq)) return 'no'
    if (lease.held.size === 0) this.live.delete(lease)
    return this.#settle(lease, seq, outcome, delayMs)
  }

  release(lease: ModelLease): boolean {
    if (!this.#valid(lease)) return false
    this.live.delete(lease)
    const held = [...lease.held].toSorted((a, b) => a - b)
    const first = held[0] as number
    const fresh = lease.attempt === 1 && this.next === lease.to + 1
    const suffix = held.length === lease.to - first + 1
    if (fresh && suffix && ![...this.again.keys()].some((seq) => seq >= first)) {
      this.next = first
      this.blockedUntil = undefined
    } else {
      const alone = lease.attempt > 1
      for (const seq of held) this.#comeBack(seq, lease.attempt - 1, alone, this.now)
    }
    return true
  }

  /** Returns the new expiry, or null if the lease is lost. */
  extend(lease: ModelLease, durationMs: number): number | null {
    if (!this.#valid(lease)) return null
    lease.expiresAt = Math.max(lease.expiresAt, this.now + durationMs)
    return lease.expiresAt
  }

  /** Does what reaping and promotion do at the current time. */
  maintain(): void {
    for (const lease of this.live) {
      if (lease.expiresAt > this.now) continue
      this.live.delete(lease)
      for (const seq of lease.held) {
        if (lease.attempt > this.#rules.retryLimit) this.dead.push(seq)
        else this.#comeBack(seq, lease.attempt, true, this.now)
      }
    }
    for (const entry of this.again.values()) {
      if (entry.announced || entry.due > this.now) continue
      entry.announced = true
      this.blockedUntil = undefined
    }
    if (this.blockedUntil !== undefined && this.blockedUntil <= this.now)
      this.blockedUntil = undefined
  }

  /** Returns the seqs of all states, sorted. Each seq must occur exactly once. */
  places(): number[] {
    const held = [...this.live].flatMap((lease) => [...lease.held])
    const ahead = Array.from({ length: this.head - this.next }, (_, i) => this.next + i)
    const all = [...this.completed, ...this.dead, ...this.again.keys(), ...held, ...ahead]
    return all.toSorted((a, b) => a - b)
  }

  #valid(lease: ModelLease): boolean {
    return this.live.has(lease) && lease.expiresAt > this.now
  }

  #waiting(): [number, Redelivery][] {
    return [...this.again].toSorted(([a], [b]) => a - b)
  }

  /**
   * Leases one message that must be delivered alone, or several in a row that have the same number of
   * attempts. Stops at the first message that does not fit.
   */
  #deliverAgain(
    candidates: readonly [number, Redelivery][],
    batch: number,
    leaseMs: number,
  ): ModelLease {
    const [head] = candidates as [[number, Redelivery]]
    const run: number[] = []
    for (const [seq, entry] of candidates) {
      if (run.length === batch) break
      if (run.length > 0 && (entry.alone || entry.attempt !== head[1].attempt || !entry.announced))
        break
      run.push(seq)
      if (entry.alone) break
    }
    for (const seq of run) this.again.delete(seq)
    return this.#lease(run, head[1].attempt + 1, leaseMs)
  }

  #lease(seqs: readonly number[], attempt: number, leaseMs: number): ModelLease {
    const to = seqs.at(-1) as number
    const lease = { to, attempt, seqs, held: new Set(seqs), expiresAt: this.now + leaseMs }
    this.live.add(lease)
    return lease
  }

  #settle(lease: ModelLease, seq: number, outcome: Outcome, delayMs?: number): 'yes' | 'dead' {
    const { backoffMs, retryLimit } = this.#rules
    if (outcome === 'completed') {
      this.completed.push(seq)
      return 'yes'
    }
    if (outcome === 'dlq' || (outcome === 'failed' && lease.attempt > retryLimit)) {
      this.dead.push(seq)
      return 'dead'
    }
    const step = backoffMs[Math.min(lease.attempt, backoffMs.length) - 1] as number
    const due = this.now + (delayMs ?? (outcome === 'failed' ? step : 0))
    this.#comeBack(seq, lease.attempt - (outcome === 'retry' ? 1 : 0), false, due)
    const isBehind = [...this.again].some(([other, { announced }]) => other < seq && announced)
    if (due > this.now && this.#holds && !isBehind) {
      this.blockedUntil = Math.min(this.blockedUntil ?? due, due)
    }
    return 'yes'
  }

  #comeBack(seq: number, attempt: number, alone: boolean, due: number): void {
    this.again.set(seq, { attempt, alone, due, announced: due <= this.now })
    // This message is due, and it may be delivered before the message that the lane waits for.
    if (due <= this.now) this.blockedUntil = undefined
  }
}
