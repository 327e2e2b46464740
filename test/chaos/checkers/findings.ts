import type { History } from '../history/history.ts'

/**
 * A rule reads the whole history and returns its violations. It is pure: the same history gives the same
 * findings.
 */
export type Rule = (history: History) => Findings

export interface Violation {
  readonly what: string
  /** The records that show the violation. */
  readonly shownBy: readonly object[]
}

/** A broken product may break a rule a million times: all violations are counted, the first are kept. */
const violationsKeptMax = 50

export class Findings {
  readonly violations: Violation[] = []
  #count = 0

  get count(): number {
    return this.#count
  }

  add(what: string, ...shownBy: readonly object[]): void {
    this.#count += 1
    if (this.violations.length < violationsKeptMax) this.violations.push({ what, shownBy })
  }
}
