import type { History } from '../history/history.ts'

/** A rule looks at the whole history and says what breaks it. Pure: same history, same findings. */
export type Rule = (history: History) => Findings

export interface Violation {
  readonly what: string
  /** The parts of the history that show it. */
  readonly shownBy: readonly object[]
}

/** A broken product may break a rule a million times: all are counted, the first are kept. */
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
