// A seeded bug: a small change in the text of the product, to test whether the checkers notice it.
//
// The files of the product stay unchanged. A patched SQL function is created in the migrated database and
// replaces the original; a module is patched by a loader when a process of a node loads it
// (patch-loader.mjs).
import type { RuleName } from '../checkers/check.ts'

export interface Replacement {
  /** Relative to the repository root: a file of SQL functions, or a built module. */
  readonly file: string
  /** Must occur exactly once; otherwise the bug is not in the product and the run proves nothing. */
  readonly find: string
  readonly put: string
}

export interface Bug {
  readonly name: string
  /** A description of the bug. */
  readonly does: string
  readonly replaces: readonly Replacement[]
  /** At least one of these rules must be broken; if there are several, which one depends on chance. */
  readonly caughtBy: readonly RuleName[]
  /** The run that reveals it. */
  readonly workloads: readonly string[]
  readonly faults: readonly string[]
  readonly seconds: number
  /**
   * The producers' rate, if 1 would reveal it too rarely or slow the machine too much to check time limits.
   */
  readonly rate?: number
  /** None, unless the fault needs one. */
  readonly standby?: 'sync'
}

export function broken(text: string, { file, find, put }: Replacement): string {
  const places = text.split(find).length - 1
  if (places !== 1)
    throw new Error(`${file} contains the text ${places} times instead of once: ${find}`)
  // A function, because `$` has a meaning in a replacement string.
  return text.replace(find, () => put)
}
