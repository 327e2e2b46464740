// Limits of API keys: requests and bytes a second, and open pops. A node's share of a limit is the limit
// divided by the number of live nodes. No node can use the rest of another node's share.
//
// Each worker has a bucket for every key with limits, as large as the share of the whole node. Every tenth of
// a second the workers of a node report what they have admitted, and each subtracts what the others report.
// So a request never waits for another process. The node may admit more than its share for a tenth of a
// second; the buckets are then below zero, and admit less until they are refilled.
import { type KeyLimits, RouseError } from '@rouse/protocol'
import type { Clock } from '../clock.ts'

/** What one worker has admitted for a key: since the last report, and the pops that are open now. */
export interface LimitUse {
  readonly keyId: string
  readonly requests: number
  readonly bytes: number
  readonly openPops: number
}

/** Workers repeat the number of their open pops within this time. */
const useMsMax = 3_000
const debtSecondsMax = 60

export class RateLimits {
  readonly #clock: Clock
  readonly #keys = new Map<string, KeyUse>()
  #nodes = 1

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** The number of live nodes of the cluster, with this one. */
  set nodes(count: number) {
    this.#nodes = Math.max(count, 1)
  }

  /** Throws `rate_limited`, or counts the request. `bytes` is the size of its body, as far as it is known. */
  admit(keyId: string, limits: KeyLimits, bytes: number): void {
    const use = this.#useOf(keyId)
    const nowMs = this.#clock.nowMs()
    const requests = use.requests.fill(this.#share(limits.requestsPerSecond), nowMs)
    const allowance = use.bytes.fill(this.#share(limits.bytesPerSecond), nowMs)
    if (requests < 1) throw limited('requests', use.requests.secondsUntil(1))
    if (allowance <= 0) throw limited('bytes', use.bytes.secondsUntil(0))
    use.requests.take(1)
    use.bytes.take(bytes)
    use.isReported = false
  }

  /** Counts bytes that were only known after the request was admitted, such as those of its response. */
  charge(keyId: string, bytes: number): void {
    const use = this.#useOf(keyId)
    use.bytes.take(bytes)
    use.isReported = false
  }

  /** Throws `rate_limited` if the key has too many open pops. Call `popClosed` for each that was opened. */
  openPop(keyId: string, limits: KeyLimits): void {
    const use = this.#useOf(keyId)
    const share = Math.max(1, Math.floor(this.#share(limits.waitingPops)))
    if (use.openPops + use.othersPops(this.#clock.nowMs()) >= share)
      throw limited('waiting pops', 1)
    use.openPops += 1
    use.isReported = false
  }

  popClosed(keyId: string): void {
    const use = this.#useOf(keyId)
    use.openPops -= 1
    use.isReported = false
  }

  /** What this worker has to report to the others of its node. `all`: also pops that were reported before. */
  takeUse(all: boolean): LimitUse[] {
    const taken: LimitUse[] = []
    for (const [keyId, use] of this.#keys) {
      if (use.isReported && !(all && use.openPops > 0)) continue
      use.isReported = true
      const { openPops } = use
      taken.push({ keyId, requests: use.requests.takeUse(), bytes: use.bytes.takeUse(), openPops })
    }
    return taken
  }

  /** Another worker of this node has reported. */
  applyUse(workerId: number, uses: readonly LimitUse[]): void {
    const nowMs = this.#clock.nowMs()
    for (const { keyId, requests, bytes, openPops } of uses) {
      const use = this.#useOf(keyId)
      use.requests.takeElsewhere(requests)
      use.bytes.takeElsewhere(bytes)
      use.others.set(workerId, { openPops, atMs: nowMs })
    }
  }

  /** Forgets keys that are gone. */
  keep(keyIds: ReadonlySet<string>): void {
    for (const [keyId, { openPops }] of this.#keys) {
      if (openPops === 0 && !keyIds.has(keyId)) this.#keys.delete(keyId)
    }
  }

  #share(limit: number | undefined): number {
    return limit === undefined ? Number.POSITIVE_INFINITY : limit / this.#nodes
  }

  #useOf(keyId: string): KeyUse {
    const known = this.#keys.get(keyId)
    if (known !== undefined) return known
    const use = new KeyUse()
    this.#keys.set(keyId, use)
    return use
  }
}

class KeyUse {
  readonly requests = new Bucket()
  readonly bytes = new Bucket()
  /** By worker. */
  readonly others = new Map<number, { readonly openPops: number; readonly atMs: number }>()
  openPops = 0
  isReported = true

  /** The open pops of the other workers. A worker that died no longer reports. */
  othersPops(nowMs: number): number {
    let sum = 0
    for (const [workerId, { openPops, atMs }] of this.others) {
      if (nowMs - atMs > useMsMax) this.others.delete(workerId)
      else sum += openPops
    }
    return sum
  }
}

/** A token bucket that holds what accrues in a second, and at least one token. */
class Bucket {
  #tokens = Number.POSITIVE_INFINITY
  #perSecond = Number.POSITIVE_INFINITY
  #filledAtMs = 0
  #used = 0

  /** Adds what has accrued since the last call. Returns the tokens. */
  fill(perSecond: number, nowMs: number): number {
    const seconds = (nowMs - this.#filledAtMs) / 1_000
    const tokens =
      perSecond === Number.POSITIVE_INFINITY ? perSecond : this.#tokens + seconds * perSecond
    this.#tokens = Math.min(tokens, Math.max(perSecond, 1))
    this.#perSecond = perSecond
    this.#filledAtMs = nowMs
    return this.#tokens
  }

  take(count: number): void {
    this.takeElsewhere(count)
    this.#used += count
  }

  /** A request of any size is paid back within a minute. */
  takeElsewhere(count: number): void {
    this.#tokens = Math.max(this.#tokens - count, -debtSecondsMax * this.#perSecond)
  }

  /** What was taken here since the last call. */
  takeUse(): number {
    const used = this.#used
    this.#used = 0
    return used
  }

  secondsUntil(tokens: number): number {
    return (tokens - this.#tokens) / this.#perSecond
  }
}

function limited(what: string, seconds: number): RouseError {
  const retryAfterSeconds = Math.max(Math.ceil(seconds), 1)
  return new RouseError('rate_limited', `the API key has used up its limit of ${what}`, {
    retryAfterSeconds,
  })
}
