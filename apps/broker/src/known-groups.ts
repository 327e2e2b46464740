import {
  type GroupDescription as FlatDescription,
  type GroupKey,
  groupKey,
} from '@rouse/shared-state'
import type { GroupDescription } from '@rouse/sidecar'

/** The groups that somebody on this node waits for, as its workers describe them. */
export class KnownGroups {
  readonly #groups = new Map<GroupKey, KnownGroup>()

  add(workerId: number, key: GroupKey, description: GroupDescription): void {
    const known = this.#groups.get(key) ?? { description, workers: new Set() }
    known.workers.add(workerId)
    this.#groups.set(key, known)
  }

  /** Nobody waits for it at this worker any more. */
  remove(workerId: number, key: GroupKey): void {
    const known = this.#groups.get(key)
    known?.workers.delete(workerId)
    if (known?.workers.size === 0) this.#groups.delete(key)
  }

  removeWorker(workerId: number): void {
    for (const key of this.#groups.keys()) this.remove(workerId, key)
  }

  /** Undefined where nobody waits. */
  describe(key: GroupKey): GroupDescription | undefined {
    return this.#groups.get(key)?.description
  }
}

interface KnownGroup {
  readonly description: GroupDescription
  readonly workers: Set<number>
}

export function flat({ source, group }: GroupDescription): FlatDescription {
  return { ...source, group }
}

export function keyOf(description: GroupDescription): GroupKey {
  return groupKey(flat(description))
}
