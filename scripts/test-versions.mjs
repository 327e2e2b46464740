// `npm run test:versions [-- majors]`: the suites that depend on the PostgreSQL version, on each supported
// version or on the given ones. The last line is `N passed, M failed`, over all of them.

import { setup } from './setup.mjs'
import { runOnPostgres, versionSuites } from './test/postgres-suites.mjs'
import { reportRuns } from './test/run-tap.mjs'

await setup()
const { postgresMajors } = await import('../packages/testkit/dist/index.js')
const wanted = process.argv.slice(2).map(Number)
const unknown = wanted.filter((major) => !postgresMajors.includes(major))
if (unknown.length > 0) {
  console.error(`usage: npm run test:versions [-- majors]; majors: ${postgresMajors.join(', ')}`)
  process.exit(1)
}

const runs = []
const lines = []
for (const major of wanted.length > 0 ? wanted : postgresMajors) {
  console.log(`\non PostgreSQL ${major}:`)
  const run = await runOnPostgres([{ major, files: versionSuites() }])
  if (run === undefined) continue
  runs.push(run)
  lines.push(`PostgreSQL ${major}: ${run.passed} passed, ${run.failed} failed`)
}
console.log(`\n${lines.join('\n')}`)
process.exitCode = reportRuns(runs)
