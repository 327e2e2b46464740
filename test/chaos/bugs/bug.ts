// A seeded bug: the product with a few words of its text exchanged, to see whether the checkers notice.
//
// The product knows nothing of it. SQL functions are created anew, with the change, in the migrated database; modules are
// changed on their way into the nodes' processes by a loader (patch-loader.mjs).
import type { RuleName } from '../checkers/check.ts'

export interface Replacement {
  /** From the repository's root: a file of SQL functions, or a built module. */
  readonly file: string
  /** Must be there exactly once: a bug that is not in is no proof of anything. */
  readonly find: string
  readonly put: string
}

export interface Bug {
  readonly name: string
  /** What it does, in words. */
  readonly does: string
  readonly replaces: readonly Replacement[]
  /** One of these rules must fire: which of them is up to chance where there are several. */
  readonly caughtBy: readonly RuleName[]
  /** The run that shows it. */
  readonly workloads: readonly string[]
  readonly faults: readonly string[]
  readonly seconds: number
  /** Of the producers, where 1 would show it too seldom, or would be too much to judge times by. */
  readonly rate?: number
  /** None, unless the fault is about it. */
  readonly standby?: 'sync'
}

export function broken(text: string, { file, find, put }: Replacement): string {
  const places = text.split(find).length - 1
  if (places !== 1) throw new Error(`${file} has ${places} places like: ${find}`)
  // A function: in a text, `$` would have a meaning.
  return text.replace(find, () => put)
}
