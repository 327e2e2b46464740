import type { GroupState } from './wait-group.ts'

/**
 * The version of this node's interest that its peers hold. A group that some peer does not know cannot rely
 * on hints yet.
 */
export class AdvertisedInterest {
  readonly #hasPeers: boolean
  #version = 0
  #echoed = 0

  constructor(hasPeers: boolean) {
    this.#hasPeers = hasPeers
  }

  get version(): number {
    return this.#version
  }

  begin(group: GroupState): void {
    this.#version += 1
    group.interestVersion = this.#version
    group.isAdvertised = !this.#hasPeers
  }

  end(): void {
    this.#version += 1
  }

  /**
   * Records the version that every peer holds. This version goes back when a peer joins. `missed` are the
   * groups that were popped before all peers knew about them, and may have missed a hint since.
   */
  echoed(
    version: number,
    groups: Iterable<GroupState>,
  ): { readonly missed: GroupState[]; readonly isLess: boolean } {
    const isLess = version < this.#echoed
    const missed: GroupState[] = []
    if (version === this.#echoed) return { missed, isLess }
    this.#echoed = version
    for (const group of groups) {
      group.isAdvertised = !this.#hasPeers || group.interestVersion <= version
      if (!group.isAdvertised) group.poppedUnadvertised = true
      else if (group.poppedUnadvertised) {
        group.poppedUnadvertised = false
        missed.push(group)
      }
    }
    return { missed, isLess }
  }
}
