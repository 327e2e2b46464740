// The circuit breaker around PostgreSQL.
//
//   up     calls go through. A call that finds no server moves it to down.
//   down   pushes are refused at once, waiting pops go on waiting. One probe at a time asks the server; the first
//          answer moves it back to up and tells the listener, who looks for what came in meanwhile.
import { setTimeout as delay } from 'node:timers/promises'
import type { Executor } from './statements/executor.ts'
import { ping } from './statements/ping.ts'

const probeIntervalMs = 200

export class DatabaseHealth {
  readonly #executor: Executor
  readonly #onRecovered: () => void
  #up = true
  #stopped = new AbortController()
  #probing: Promise<void> | undefined

  constructor(executor: Executor, onRecovered: () => void) {
    this.#executor = executor
    this.#onRecovered = onRecovered
  }

  get up(): boolean {
    return this.#up
  }

  failed(): void {
    this.#up = false
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
        this.#up = true
        this.#onRecovered()
        return
      } catch {
        await delay(probeIntervalMs, undefined, { signal: this.#stopped.signal }).catch(() => {})
      }
    }
  }
}
