import type { SidecarId } from './ports.ts'

/** Workers that left a grant untaken, or stopped in the middle of a pop, and have not been heard since. */
export class SilentSidecars {
  readonly #silentMs: number
  readonly #silent = new Set<SidecarId>()
  readonly #heardAt = new Map<SidecarId, number>()

  constructor(silentMs: number) {
    this.#silentMs = silentMs
  }

  get all(): ReadonlySet<SidecarId> {
    return this.#silent
  }

  add(sidecarId: SidecarId): void {
    this.#silent.add(sidecarId)
  }

  /** True: it had been silent. */
  heard(sidecarId: SidecarId, now: number): boolean {
    this.#heardAt.set(sidecarId, now)
    return this.#silent.delete(sidecarId)
  }

  /** Whether it has said nothing for so long that it must have stopped. */
  isSilent(sidecarId: SidecarId, now: number): boolean {
    return now - (this.#heardAt.get(sidecarId) ?? Number.NEGATIVE_INFINITY) >= this.#silentMs
  }

  forget(sidecarId: SidecarId): void {
    this.#silent.delete(sidecarId)
    this.#heardAt.delete(sidecarId)
  }
}
