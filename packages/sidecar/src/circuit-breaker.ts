// The circuit breaker around PostgreSQL.
//
//   up     calls go through. A call that cannot reach the server moves the breaker to down.
//   down   writes are refused at once, waiting pops keep waiting. One probe at a time pings the server; the
//          first success moves the breaker back to up and calls `onRecovered`, which retries the waiting pops.
import { setTimeout as delay } from 'node:timers/promises'
import type { Executor } from '@rouse/storage'
import { ping } from '@rouse/storage'

const probeIntervalMs = 200

export class CircuitBreaker {
  readonly #executor: Executor
  readonly #onRecovered: () => void
  readonly #random: () => number
  /** Only this class writes it. */
  up = true
  #stopped = new AbortController()
  #probing: Promise<void> | undefined

  constructor(options: {
    readonly executor: Executor
    readonly onRecovered: () => void
    /** From 0 to 1, for jitter: every worker of every node probes the same server. */
    readonly random: () => number
  }) {
    this.#executor = options.executor
    this.#onRecovered = options.onRecovered
    this.#random = options.random
  }

  failed(): void {
    this.up = false
    if (this.#stopped.signal.aborted) return
    this.#probing ??= this.#probe().finally(() => {
      this.#probing = undefined
    })
  }

  async stop(): Promise<void> {
    this.#stopped.abort()
    await this.#probing
  }

  async #probe(): Promise<void> {
    while (!this.#stopped.signal.aborted) {
      try {
        await ping(this.#executor)
        this.up = true
        this.#onRecovered()
        return
      } catch {
        const pauseMs = probeIntervalMs * (0.5 + this.#random())
        await delay(pauseMs, undefined, { signal: this.#stopped.signal }).catch(() => {})
      }
    }
  }
}
