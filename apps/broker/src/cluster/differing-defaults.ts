import type { SeenNode } from '@rouse/storage'
import type { Logger } from '../log.ts'

type Defaults = Readonly<Record<string, unknown>>

/** The differences by option. null means that the node uses the built-in default. */
export type Differences = Record<string, { readonly here: unknown; readonly there: unknown }>

export function differencesOf(here: Defaults, there: Defaults): Differences {
  const names = [...new Set([...Object.keys(here), ...Object.keys(there)])].sort()
  const pairs = names.map((name) => {
    return [name, { here: here[name] ?? null, there: there[name] ?? null }] as const
  })
  return Object.fromEntries(
    pairs.filter(([, pair]) => JSON.stringify(pair.here) !== JSON.stringify(pair.there)),
  )
}

/**
 * Warns about every node whose ROUSE_DEFAULT_* settings differ from ours: once, and again when they change.
 */
export class DifferingDefaults {
  readonly #own: Defaults
  readonly #log: Logger
  /** The last known difference of each node. */
  #found = new Map<string, string>()

  constructor(own: Defaults, log: Logger) {
    this.#own = own
    this.#log = log
  }

  compare(others: readonly SeenNode[]): void {
    const found = new Map<string, string>()
    for (const { id, queueDefaults } of others) {
      const differences = differencesOf(this.#own, queueDefaults ?? this.#own)
      const text = JSON.stringify(differences)
      found.set(id, text)
      if (text === '{}' || text === this.#found.get(id)) continue
      this.#log.warn(
        { peer: id, differences },
        'nodes have different queue defaults (ROUSE_DEFAULT_*): those of the node that started last apply to new queues',
      )
    }
    this.#found = found
  }
}
