// `npm test`: set-up, checks, then every suite in one tap run against one shared PostgreSQL. The
// last line is `N passed, M failed`.
import { existsSync, mkdirSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { root, run, runOrExit } from './run.mjs'
import { setup } from './setup.mjs'
import { countTapResults } from './tap-results.mjs'

await setup()
await runOrExit('npm', ['run', '--silent', 'check'])
process.exitCode = await testWithSharedPostgres(process.argv.slice(2))

/** The server is shared because a start costs more than most suites; a test file that runs alone
 * starts its own. A server the caller named, or containers, take its place. */
async function testWithSharedPostgres(files) {
  if (process.env.ROUSE_TEST_DATABASE_URL || process.env.ROUSE_TEST_POSTGRES === 'container') {
    return runSuites(files)
  }
  const { startEmbeddedPostgres } = await import('../packages/database/dist/index.js')
  const { testServerSettings } = await import('../packages/testkit/dist/index.js')
  const postgres = await startEmbeddedPostgres({ settings: testServerSettings })
  try {
    return await runSuites(files, { ROUSE_TEST_DATABASE_URL: postgres.url })
  } finally {
    await postgres.stop()
  }
}

async function runSuites(files, environment) {
  const output = join(root, '.tap', 'rouse-results.tap')
  mkdirSync(join(root, '.tap'), { recursive: true })
  rmSync(output, { force: true })
  const code = await run('tap', [`--output-file=${output}`, ...files], environment)
  const { passed, failed } = countTapResults(existsSync(output) ? readFileSync(output, 'utf8') : '')
  // tap can fail with every counted test green, for example when it could not start at all.
  const failures = code !== 0 ? Math.max(failed, 1) : failed
  console.log(`${passed} passed, ${failures} failed`)
  return failures === 0 ? 0 : 1
}
