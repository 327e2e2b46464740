import type { Bug } from './bug.ts'
import { nodeBugs } from './node-bugs.ts'
import { operatorBugs } from './operator-bugs.ts'
import { sqlBugs } from './sql-bugs.ts'

export const bugs: readonly Bug[] = [...sqlBugs, ...operatorBugs, ...nodeBugs]

export function bugNamed(name: string): Bug {
  const bug = bugs.find((candidate) => candidate.name === name)
  if (bug === undefined) {
    throw new Error(`unknown bug "${name}"; known: ${bugs.map((known) => known.name).join(', ')}`)
  }
  return bug
}
