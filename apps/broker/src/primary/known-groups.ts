import type { WaitGroup } from '@rouse/protocol'
import type { GroupKey } from '@rouse/shared-state'

/** The wait groups of this node's workers, by key. */
export class KnownGroups {
  readonly #groups = new Map<GroupKey, KnownGroup>()

  add(workerId: number, key: GroupKey, description: WaitGroup): void {
    const known = this.#groups.get(key) ?? { description, workers: new Set() }
    known.workers.add(workerId)
    this.#groups.set(key, known)
  }

  /** This worker has no more waiters for the group. */
  remove(workerId: number, key: GroupKey): void {
    const known = this.#groups.get(key)
    known?.workers.delete(workerId)
    if (known?.workers.size === 0) this.#groups.delete(key)
  }

  removeWorker(workerId: number): void {
    for (const key of this.#groups.keys()) this.remove(workerId, key)
  }

  /** Undefined if the group has no waiters. */
  describe(key: GroupKey): WaitGroup | undefined {
    return this.#groups.get(key)?.description
  }
}

interface KnownGroup {
  readonly description: WaitGroup
  readonly workers: Set<number>
}
