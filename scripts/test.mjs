// `npm test [-- files]`: set-up, checks, then every suite in one tap run against one shared PostgreSQL of the
// newest version, and the version-dependent suites on the oldest. The last line is `N passed, M failed`, over
// both.
import { oldestSuites, runOnPostgres } from './postgres-suites.mjs'
import { run } from './run.mjs'
import { reportRuns, runTap } from './run-tap.mjs'
import { setup } from './setup.mjs'

await setup()
if ((await run('npm', ['run', '--silent', 'check'])) === 0) {
  process.exitCode = reportRuns(await runAll(process.argv.slice(2)))
} else {
  console.log('the checks failed, so no tests were run\n0 passed, 1 failed')
  process.exitCode = 1
}

/** A server or version given by the caller replaces both runs. */
async function runAll(files) {
  if (process.env.ROUSE_TEST_DATABASE_URL) return [await runTap(files)]
  const { majorUnderTest, postgresMajors } = await import('../packages/testkit/dist/index.js')
  const runs = [await runOnPostgres(majorUnderTest(), files)]
  if (files.length === 0 && !process.env.ROUSE_TEST_POSTGRES_MAJOR) {
    const [oldest] = postgresMajors
    console.log(`\non PostgreSQL ${oldest}:`)
    runs.push(await runOnPostgres(oldest, oldestSuites()))
  }
  return runs.filter((run) => run !== undefined)
}
