// The checkers against a cluster that is broken on purpose. All bugs: `npm run chaos -- --bugs`.
import { test } from 'tap'
import { violations } from '../checkers/summary.ts'
import { bugNamed } from './bugs.ts'
import { isCaught, runWith } from './run-bugs.ts'

/** They live in three workloads and do not hide each other, so that one cluster does for all. */
const names = ['forget-keys', 'deliver-early', 'reverse-pushes']

test('three bugs in one cluster are found by three rules', async (t) => {
  const bugs = names.map(bugNamed)
  const { fired, verdict } = await runWith(bugs, { seed: 7, say: (line) => t.comment(line) })
  for (const bug of bugs) t.ok(isCaught(bug, fired), `${bug.name}: ${bug.caughtBy.join(', ')}`)
  t.comment(violations(verdict))
})
