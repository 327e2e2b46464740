import type { SidecarId } from './ports.ts'

/** Workers that did not take a grant, or stopped during a pop, and have not been heard since. */
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

  /** True: the worker had been silent. */
  heard(sidecarId: SidecarId, now: number): boolean {
    this.#heardAt.set(sidecarId, now)
    return this.#silent.delete(sidecarId)
  }

  /** Whether the worker has been silent long enough to count as stopped. */
  isSilent(sidecarId: SidecarId, now: number): boolean {
    return now - (this.#heardAt.get(sidecarId) ?? Number.NEGATIVE_INFINITY) >= this.#silentMs
  }

  forget(sidecarId: SidecarId): void {
    this.#silent.delete(sidecarId)
    this.#heardAt.delete(sidecarId)
  }
}
