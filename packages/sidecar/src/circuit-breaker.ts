// The circuit breaker around PostgreSQL.
//
//   up     calls go through. A call that finds no server moves it to down.
//   down   pushes are refused at once, waiting pops go on waiting. One probe at a time asks the server; the first
//          answer moves it back to up and tells the listener, who looks for what came in meanwhile.
import { setTimeout as delay } from 'node:timers/promises'
import type { Executor } from '@rouse/storage'
import { ping } from '@rouse/storage'

const probeIntervalMs = 200

export class CircuitBreaker {
  readonly #executor: Executor
  readonly #onRecovered: () => void
  readonly #random: () => number
  /** Written here only. */
  up = true
  #stopped = new AbortController()
  #probing: Promise<void> | undefined

  constructor(options: {
    readonly executor: Executor
    readonly onRecovered: () => void
    /** From 0 to 1: all workers of all nodes probe the same server. */
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
