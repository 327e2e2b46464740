// Renews each lease of a worker until all its messages have ended, including those that wait for a handler. A
// lease is renewed after a third to a half of its time. It counts as lost when the server reports the loss,
// or when its time passes without a successful renewal. A lease that a transaction with ackIn has locked is not
// extended: the answer says how much of its time is left, and the renewal is tried again.
import { nowMs } from '../clock.ts'
import type { HeldLease } from './held.ts'

export interface LeaseKeeperOptions {
  readonly leaseMs: number
  /** Resolves to how long the lease lasts from then on, or to 0 if it is lost. */
  readonly extend: (
    lease: HeldLease,
    limits: { readonly timeoutMs: number; readonly retryForMs: number },
  ) => Promise<number>
  readonly onLost: (lease: HeldLease) => void
  readonly onError: (error: unknown) => void
}

export class LeaseKeeper {
  readonly #options: LeaseKeeperOptions
  readonly #leases = new Set<HeldLease>()
  #timer: ReturnType<typeof setInterval> | undefined

  constructor(options: LeaseKeeperOptions) {
    this.#options = options
  }

  start(): void {
    this.#timer ??= setInterval(() => this.#look(), Math.max(10, this.#options.leaseMs / 6))
  }

  stop(): void {
    clearInterval(this.#timer)
    this.#timer = undefined
  }

  keep(lease: HeldLease): void {
    this.#leases.add(lease)
  }

  /** One message of the lease has ended. */
  ended(lease: HeldLease): void {
    lease.open -= 1
    if (lease.open <= 0) this.#leases.delete(lease)
  }

  drop(lease: HeldLease): void {
    lease.lost = true
    this.#leases.delete(lease)
  }

  /** Whether, by our clock, the lease cannot have been reassigned yet. */
  isOurs(lease: HeldLease): boolean {
    return !lease.lost && nowMs() < lease.sinceMs + this.#options.leaseMs
  }

  #look(): void {
    const { leaseMs } = this.#options
    const now = nowMs()
    for (const lease of this.#leases) {
      const ageMs = now - lease.sinceMs
      if (ageMs >= leaseMs) this.#lose(lease)
      else if (ageMs >= leaseMs / 3 && !lease.renewing) void this.#renew(lease, leaseMs - ageMs)
    }
  }

  async #renew(lease: HeldLease, leftMs: number): Promise<void> {
    const { extend, onError, leaseMs } = this.#options
    const sentMs = nowMs()
    lease.renewing = true
    try {
      const lastsMs = await extend(lease, { timeoutMs: leaseMs / 4, retryForMs: leftMs })
      if (lastsMs) lease.sinceMs = sentMs + Math.min(0, lastsMs - leaseMs)
      else if (lease.open > 0) this.#lose(lease)
    } catch (error) {
      onError(error)
    } finally {
      lease.renewing = false
    }
  }

  #lose(lease: HeldLease): void {
    if (lease.lost) return
    this.drop(lease)
    this.#options.onLost(lease)
  }
}
