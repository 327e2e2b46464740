// Records the messages that a bench pushed and received.
import { setTimeout as delay } from 'node:timers/promises'

export interface BenchLatency {
  readonly p50: number
  readonly p95: number
  readonly p99: number
  readonly max: number
}

export interface BenchStats {
  readonly seconds: number
  readonly pushed: number
  readonly consumed: number
  readonly pushPerSecond: number
  readonly consumePerSecond: number
  readonly pushMs: BenchLatency
  readonly endToEndMs: BenchLatency
  readonly lost: number
  readonly duplicated: number
  readonly outOfOrder: number
}

export class BenchRecord {
  readonly #partitions: number
  readonly #startedAt = performance.now()
  readonly #stored = new Set<number>()
  readonly #received = new Set<number>()
  readonly #pushMs: number[] = []
  readonly #endToEndMs: number[] = []
  /** The messages of each partition in order of arrival. */
  readonly #arrivals = new Map<number, number[]>()
  #last = -1
  #duplicated = 0
  #pushedAt = 0
  #consumedAt = 0

  constructor(partitions: number) {
    this.#partitions = partitions
  }

  next(): number {
    this.#last += 1
    return this.#last
  }

  stored(n: number, tookMs: number): void {
    this.#stored.add(n)
    this.#pushMs.push(tookMs)
  }

  pushingEnded(): void {
    this.#pushedAt = performance.now()
  }

  received(n: number, tookMs: number): void {
    this.#consumedAt = performance.now()
    if (this.#received.has(n)) this.#duplicated += 1
    else this.#endToEndMs.push(tookMs)
    this.#received.add(n)
    const partition = n % this.#partitions
    const before = this.#arrivals.get(partition)
    if (before === undefined) this.#arrivals.set(partition, [n])
    else before.push(n)
  }

  async untilAllReceived(msMax: number): Promise<void> {
    const endsAt = performance.now() + msMax
    while (this.#received.size < this.#stored.size && performance.now() < endsAt) await delay(20)
  }

  soFar(): { pushed: number; consumed: number; perSecond: number } {
    const seconds = (performance.now() - this.#startedAt) / 1_000
    const pushed = this.#stored.size
    return { pushed, consumed: this.#received.size, perSecond: Math.round(pushed / seconds) }
  }

  stats(): BenchStats {
    const seconds = (this.#pushedAt - this.#startedAt) / 1_000
    const consuming = Math.max(seconds, (this.#consumedAt - this.#startedAt) / 1_000)
    let lost = 0
    for (const n of this.#stored) if (!this.#received.has(n)) lost += 1
    return {
      seconds: round(seconds),
      pushed: this.#stored.size,
      consumed: this.#received.size,
      pushPerSecond: Math.round(this.#stored.size / seconds),
      consumePerSecond: Math.round(this.#received.size / consuming),
      pushMs: latencyOf(this.#pushMs),
      endToEndMs: latencyOf(this.#endToEndMs),
      lost,
      duplicated: this.#duplicated,
      outOfOrder: this.#outOfOrder(),
    }
  }

  /**
   * Counts the messages that arrived after a later message of their partition. The client sends pushes in
   * call order, so the numbers within a partition must increase.
   */
  #outOfOrder(): number {
    let count = 0
    for (const numbers of this.#arrivals.values()) {
      let highest = -1
      for (const n of numbers) {
        if (n < highest) count += 1
        highest = Math.max(highest, n)
      }
    }
    return count
  }
}

function latencyOf(values: readonly number[]): BenchLatency {
  const sorted = [...values].sort((a, b) => a - b)
  const at = (p: number): number => round(sorted[Math.floor((sorted.length - 1) * p)] ?? 0)
  return { p50: at(0.5), p95: at(0.95), p99: at(0.99), max: at(1) }
}

function round(value: number): number {
  return Math.round(value * 10) / 10
}
