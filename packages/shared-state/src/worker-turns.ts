import type { SidecarId } from './ports.ts'

/** Who waits for one group, and whose turn it is: the worker that was granted longest ago. */
export class WorkerTurns {
  // In the order of turns: a worker goes to the end when it is granted.
  readonly #counts = new Map<SidecarId, number>()
  #total = 0

  get total(): number {
    return this.#total
  }

  of(sidecarId: SidecarId): number {
    return this.#counts.get(sidecarId) ?? 0
  }

  set(sidecarId: SidecarId, count: number): void {
    this.#total += count - this.of(sidecarId)
    if (count > 0) this.#counts.set(sidecarId, count)
    else this.#counts.delete(sidecarId)
  }

  /** Workers that are passed over are taken only where there is no other. */
  next(passedOver: ReadonlySet<SidecarId>): SidecarId | undefined {
    for (const sidecarId of this.#counts.keys()) {
      if (!passedOver.has(sidecarId)) return sidecarId
    }
    return this.#counts.keys().next().value
  }

  hadTurn(sidecarId: SidecarId): void {
    const count = this.of(sidecarId)
    if (count === 0) return
    this.#counts.delete(sidecarId)
    this.#counts.set(sidecarId, count)
  }
}
