import type { WaitGroup, WakeHint } from '@rouse/protocol'
import { interestKey } from './hint-codec.ts'

/** The wait groups of this node by interest key and consumer group, as of the last change. */
export class OwnGroups {
  /** The partitions with waiters; `any` if there is a wait group for all partitions or for a namespace. */
  readonly #partitions = new Map<string, Map<string, Set<string> | 'any'>>()

  replace(groups: readonly WaitGroup[]): void {
    this.#partitions.clear()
    for (const one of groups) {
      const { source, group } = one
      const key = interestKey(one)
      const byGroup = this.#partitions.get(key) ?? new Map<string, Set<string> | 'any'>()
      this.#partitions.set(key, byGroup)
      const partition = 'queue' in source ? source.partition : undefined
      const known = byGroup.get(group) ?? new Set()
      if (partition === undefined || known === 'any') byGroup.set(group, 'any')
      else byGroup.set(group, known.add(partition))
    }
  }

  /** Whether the hint wakes a wait group of this consumer group. */
  match(keys: readonly string[], { partition }: WakeHint, group: string): boolean {
    return keys.some((key) => {
      const partitions = this.#partitions.get(key)?.get(group)
      if (partitions === undefined) return false
      return partitions === 'any' || (partition ?? null) === null || partitions.has(partition ?? '')
    })
  }
}
