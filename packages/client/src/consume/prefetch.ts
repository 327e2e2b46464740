// How many messages should wait for a handler: as many as are handled in a tenth of a second, so that fast
// handlers do not wait for the network, and slow ones do not hold messages that other workers could handle.

const windowMs = 100
export const prefetchMax = 1_000

export class Prefetch {
  readonly #fixed: number | undefined
  #target: number
  #handled = 0
  #sinceMs: number | undefined

  /** `fixed`: set by the user. `atFirst`: used before the first measurement. */
  constructor(fixed: number | undefined, atFirst: number) {
    this.#fixed = fixed
    this.#target = Math.min(atFirst, prefetchMax)
  }

  get target(): number {
    return this.#fixed ?? this.#target
  }

  handled(count: number, nowMs: number): void {
    this.#sinceMs ??= nowMs
    this.#handled += count
    const spentMs = nowMs - this.#sinceMs
    if (spentMs < windowMs) return
    this.#target = Math.min(prefetchMax, Math.ceil((this.#handled * windowMs) / spentMs))
    this.#handled = 0
    this.#sinceMs = nowMs
  }
}
