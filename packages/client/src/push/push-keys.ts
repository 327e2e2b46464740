// The dedupe keys of failed pushes. After most failures it is unknown what was stored. A call repeated with
// the same array sends the same keys, so the server stores nothing twice. The keys of a successful call are
// not kept, because the same array may be pushed again on purpose.
import type { PushEntry } from './push-item.ts'

interface FailedCall {
  readonly queue: string
  readonly entries: readonly PushEntry<unknown>[]
  readonly keys: readonly string[]
}

export class PushKeys {
  readonly #failed = new WeakMap<readonly PushEntry<unknown>[], FailedCall>()
  readonly #newId: () => string

  constructor(newId: () => string) {
    this.#newId = newId
  }

  /**
   * One key per entry: the entry's own `dedupeKey`. An entry without one gets the key that it had in the
   * failed call which this call repeats, or a new key if there was no such call.
   */
  keysOf(queue: string, entries: readonly PushEntry<unknown>[]): string[] {
    const before = this.#failed.get(entries)
    return entries.map((entry, i) => {
      if (entry.dedupeKey !== undefined) return entry.dedupeKey
      const isRepeated = before?.queue === queue && before.entries[i] === entry
      return (isRepeated ? before.keys[i] : undefined) ?? this.#newId()
    })
  }

  stored(entries: readonly PushEntry<unknown>[]): void {
    this.#failed.delete(entries)
  }

  failed(queue: string, entries: readonly PushEntry<unknown>[], keys: readonly string[]): void {
    this.#failed.set(entries, { queue, entries: [...entries], keys })
  }
}
