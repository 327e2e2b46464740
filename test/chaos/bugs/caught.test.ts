// Tests the checkers on a cluster with seeded bugs. `npm run chaos -- --bugs` runs all bugs.
import { test } from 'tap'
import { violations } from '../checkers/summary.ts'
import { bugNamed } from './bugs.ts'
import { isCaught, runWith } from './run-bugs.ts'

/** These bugs affect three different workloads and do not hide each other, so one cluster is enough. */
const names = ['forget-keys', 'deliver-early', 'reverse-pushes']

test('three bugs in one cluster are found by three rules', async (t) => {
  const bugs = names.map(bugNamed)
  const { fired, verdict } = await runWith(bugs, { seed: 7, print: (line) => t.comment(line) })
  for (const bug of bugs) t.ok(isCaught(bug, fired), `${bug.name}: ${bug.caughtBy.join(', ')}`)
  t.comment(violations(verdict))
})
