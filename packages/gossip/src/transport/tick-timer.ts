import type { GossipCore } from '../gossip-core.ts'

const timeoutMsMax = 2 ** 31 - 1

/** Calls a core's tick when it is due. A timer that fires waits for one look at the socket before it ticks: after a
 * stall Node runs timers first, while datagrams of peers lie in the socket unread. One look reads some thirty of
 * them, so it makes a short stall harmless; what keeps a node that stood still from blaming its peers is that the core
 * sees how late the tick is, and forgives. */
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

  /** To be called whenever something happened to the core. */
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

  /** Resolves when the core has nothing left to do, ever. */
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
        // A port that throws is its caller's fault, and no reason to be silent from now on.
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
