// A seeded bug: a small change in the text of the product, to test whether the checkers notice it.
//
// The files of the product stay unchanged. A patched SQL function is created in the migrated database and
// replaces the original; a module is patched by a loader when a process of a node loads it
// (patch-loader.mjs).
import type { RuleName } from '../checkers/check.ts'

export interface Replacement {
  /** Relative to the repository root: a file of SQL functions, or a built module. */
  readonly file: string
  /**
   * The text to replace. It must occur exactly once in the file; otherwise the bug is not in the product and
   * the run proves nothing.
   */
  readonly find: string
  readonly put: string
}

export interface Bug {
  readonly name: string
  /** A description of the bug. */
  readonly does: string
  readonly replaces: readonly Replacement[]
  /**
   * The run must break at least one of these rules. If there are several, chance decides which one is broken.
   */
  readonly caughtBy: readonly RuleName[]
  /** The workloads, faults and seconds of the run that reveals the bug. */
  readonly workloads: readonly string[]
  readonly faults: readonly string[]
  readonly seconds: number
  /**
   * The rate of the producers; default 1. Set if rate 1 would reveal the bug too rarely, or would slow the
   * machine so much that time limits cannot be checked.
   */
  readonly rate?: number
  /** Set if a fault of the run needs a standby. */
  readonly standby?: 'sync'
}

export function broken(text: string, { file, find, put }: Replacement): string {
  const places = text.split(find).length - 1
  if (places !== 1)
    throw new Error(`${file} contains the text ${places} times instead of once: ${find}`)
  // The replacement is a function, because `$` has a special meaning in a replacement string.
  return text.replace(find, () => put)
}
