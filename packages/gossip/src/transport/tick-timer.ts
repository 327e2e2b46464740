import type { GossipCore } from '../gossip-core.ts'

const timeoutMsMax = 2 ** 31 - 1

/** Calls a core's tick when it is due. When the timer fires, the event loop first reads the socket once:
 * after a stall Node.js runs timers while datagrams from peers are still unread. One read takes about thirty
 * datagrams, enough for a short stall. After a long stall the core sees how late the tick is, and does not
 * count that time as silence of its peers. */
export class TickTimer {
  readonly #core: Pick<GossipCore, 'tick' | 'nextTickAt'>
  readonly #now: () => number
  #isRunning = false
  #timeout: NodeJS.Timeout | undefined
  #immediate: NodeJS.Immediate | undefined
  #armedFor = Number.POSITIVE_INFINITY
  #onIdle: (() => void) | undefined

  constructor(core: Pick<GossipCore, 'tick' | 'nextTickAt'>, now: () => number) {
    this.#core = core
    this.#now = now
  }

  start(): void {
    this.#isRunning = true
    this.plan()
  }

  stop(): void {
    this.#isRunning = false
    clearTimeout(this.#timeout)
    clearImmediate(this.#immediate)
    this.#onIdle?.()
  }

  /** Call this after every call of the core. */
  plan(): void {
    if (!this.#isRunning || this.#immediate !== undefined) return
    const dueAt = this.#core.nextTickAt()
    if (dueAt >= this.#armedFor) return
    clearTimeout(this.#timeout)
    this.#armedFor = dueAt
    const inMs = dueAt - this.#now()
    if (inMs <= 0) this.#afterSocket()
    else this.#timeout = setTimeout(() => this.#afterSocket(), Math.min(inMs, timeoutMsMax))
  }

  /** Resolves when the core has nothing left to do. */
  idle(): Promise<void> {
    return new Promise((resolve) => {
      this.#onIdle = resolve
      this.#rearm()
    })
  }

  #afterSocket(): void {
    this.#immediate ??= setImmediate(() => {
      this.#immediate = undefined
      try {
        this.#core.tick(this.#now())
      } finally {
        // A port that throws is the caller's bug. Gossip continues.
        this.#rearm()
      }
    })
  }

  #rearm(): void {
    clearTimeout(this.#timeout)
    this.#armedFor = Number.POSITIVE_INFINITY
    this.plan()
    const isIdle = this.#core.nextTickAt() === Number.POSITIVE_INFINITY
    if (isIdle || !this.#isRunning) this.#onIdle?.()
  }
}
