import type { WaitGroup, WakeHint } from '@rouse/protocol'
import { interestKey } from './hint-codec.ts'

/** The partitions with waiters; `any` if there is a wait group for all partitions or for a namespace. */
type Partitions = Set<string> | 'any'

/** The wait groups of this node by interest key and consumer group. */
export class OwnGroups {
  #groups: readonly WaitGroup[] = []
  /** Undefined until a hint asks for it, because groups change more often than hints arrive. */
  #index: Map<string, Map<string, Partitions>> | undefined

  replace(groups: readonly WaitGroup[]): void {
    this.#groups = groups
    this.#index = undefined
  }

  /** Whether the hint wakes a wait group of this consumer group. */
  match(keys: readonly string[], { partition }: WakeHint, group: string): boolean {
    this.#index ??= indexOf(this.#groups)
    for (const key of keys) {
      const partitions = this.#index.get(key)?.get(group)
      if (partitions === undefined) continue
      if (partitions === 'any' || partition === undefined || partition === null) return true
      if (partitions.has(partition)) return true
    }
    return false
  }
}

function indexOf(groups: readonly WaitGroup[]): Map<string, Map<string, Partitions>> {
  const index = new Map<string, Map<string, Partitions>>()
  for (const one of groups) {
    const key = interestKey(one)
    const byGroup = index.get(key) ?? new Map<string, Partitions>()
    index.set(key, byGroup)
    const { source, group } = one
    const partition = 'queue' in source ? source.partition : undefined
    const known = byGroup.get(group) ?? new Set()
    if (partition === undefined || known === 'any') byGroup.set(group, 'any')
    else byGroup.set(group, known.add(partition))
  }
  return index
}
