import type { SidecarId } from './ports.ts'

/** The workers with waiters for one group. The next turn belongs to the worker whose last grant is oldest. */
export class WorkerTurns {
  // In turn order: a granted worker moves to the end.
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

  /** Workers in `passedOver` get a turn only if there is no other. */
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
