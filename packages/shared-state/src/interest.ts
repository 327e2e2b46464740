import type { WaitGroup } from '@rouse/protocol'
import type { Group } from './group-state.ts'

/** Which version of what this node waits for its peers hold. A group they do not all know of cannot
 * rely on their hints yet. */
export class Interest {
  readonly #hasPeers: boolean
  #version = 0
  #echoed = 0

  constructor(hasPeers: boolean) {
    this.#hasPeers = hasPeers
  }

  get version(): number {
    return this.#version
  }

  begin(group: Group): void {
    this.#version += 1
    group.interestVersion = this.#version
  }

  end(): void {
    this.#version += 1
  }

  isAdvertised(group: Group): boolean {
    return !this.#hasPeers || group.interestVersion <= this.#echoed
  }

  /** Takes note of the version that every peer holds: less than before where a peer is new. `missed`
   * are the groups that were popped unadvertised, and may have missed a hint after it. */
  echoed(
    version: number,
    groups: Iterable<Group>,
  ): { readonly missed: Group[]; readonly isLess: boolean } {
    const isLess = version < this.#echoed
    const missed: Group[] = []
    if (version === this.#echoed) return { missed, isLess }
    this.#echoed = version
    for (const group of groups) {
      if (!this.isAdvertised(group)) group.poppedUnadvertised = true
      else if (group.poppedUnadvertised) {
        group.poppedUnadvertised = false
        missed.push(group)
      }
    }
    return { missed, isLess }
  }
}

export function describeAll(groups: Iterable<Group>): WaitGroup[] {
  return Array.from(groups, ({ description }) => description)
}
