// `npm test [-- files]`: set-up, checks, then every suite in one tap run against one shared
// PostgreSQL. The last line is `N passed, M failed`.
import { run } from './run.mjs'
import { runTap } from './run-tap.mjs'
import { setup } from './setup.mjs'

await setup()
if ((await run('npm', ['run', '--silent', 'check'])) === 0) {
  process.exitCode = await testWithSharedPostgres(process.argv.slice(2))
} else {
  console.log('the checks failed, so no test was run\n0 passed, 1 failed')
  process.exitCode = 1
}

/** The server is shared because a start costs more than most suites; a test file that runs alone
 * starts its own. A server that the caller named takes its place. */
async function testWithSharedPostgres(files) {
  if (process.env.ROUSE_TEST_DATABASE_URL) return runTap(files)
  const { startEmbeddedPostgres } = await import('../packages/database/dist/index.js')
  const { testServerSettings } = await import('../packages/testkit/dist/index.js')
  const postgres = await startEmbeddedPostgres({ settings: testServerSettings })
  try {
    return await runTap(files, { ROUSE_TEST_DATABASE_URL: postgres.url })
  } finally {
    await postgres.stop()
  }
}
