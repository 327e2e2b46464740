import type { WaitGroup, WakeHint } from '@rouse/protocol'
import { queueSelector, selectorOf, sharedSelector } from './group-key.ts'

/** Finds the groups that match a hint without scanning the others. */
export class GroupIndex<G extends { readonly description: WaitGroup }> {
  readonly #bySelector = new Map<string, Set<G>>()
  readonly #byQueue = new Map<string, Set<G>>()
  readonly #shared = new Set<G>()

  add(group: G): void {
    const { description } = group
    const { source } = description
    addTo(this.#bySelector, selectorOf(description), group)
    if ('queue' in source) addTo(this.#byQueue, source.queue, group)
    else this.#shared.add(group)
  }

  delete(group: G): void {
    const { description } = group
    const { source } = description
    deleteFrom(this.#bySelector, selectorOf(description), group)
    if ('queue' in source) deleteFrom(this.#byQueue, source.queue, group)
    else this.#shared.delete(group)
  }

  /** All groups that name this queue; groups by namespace and task are not included. */
  ofQueue(queue: string): readonly G[] {
    return [...(this.#byQueue.get(queue) ?? [])]
  }

  matching(hint: WakeHint): G[] {
    const candidates = [...this.#ofQueueMatching(hint), ...this.#sharedMatching(hint)]
    if (hint.group === undefined || hint.group === null) return candidates
    return candidates.filter(({ description }) => description.group === hint.group)
  }

  #ofQueueMatching({ queue, partition }: WakeHint): readonly G[] {
    if (partition === undefined || partition === null) return this.ofQueue(queue)
    return this.#ofSelectors([queueSelector(queue, partition), queueSelector(queue, undefined)])
  }

  #sharedMatching({ namespace, task }: WakeHint): readonly G[] {
    if (this.#shared.size === 0) return []
    if (namespace === undefined || task === undefined) return [...this.#shared]
    const namespaces = namespace === null ? [undefined] : [namespace, undefined]
    const tasks = task === null ? [undefined] : [task, undefined]
    return this.#ofSelectors(namespaces.flatMap((n) => tasks.map((t) => sharedSelector(n, t))))
  }

  #ofSelectors(selectors: readonly string[]): readonly G[] {
    return selectors.flatMap((selector) => [...(this.#bySelector.get(selector) ?? [])])
  }
}

function addTo<G>(sets: Map<string, Set<G>>, key: string, group: G): void {
  const set = sets.get(key)
  if (set === undefined) sets.set(key, new Set([group]))
  else set.add(group)
}

function deleteFrom<G>(sets: Map<string, Set<G>>, key: string, group: G): void {
  const set = sets.get(key)
  set?.delete(group)
  if (set?.size === 0) sets.delete(key)
}
