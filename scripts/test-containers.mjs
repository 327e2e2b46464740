// `npm run test:containers [-- FILES]`: the suites that use PostgreSQL, or the given files, on a container of
// the official image instead of the embedded server.

import { setup } from './setup.mjs'
import { storageSuites } from './test/postgres-suites.mjs'
import { reportRuns, runTap } from './test/run-tap.mjs'
import { namedTestFiles } from './test/test-files.mjs'

await setup()
const { containerSource } = await import('../packages/testkit/dist/index.js')
const named = process.argv.slice(2)
const suites =
  named.length > 0
    ? namedTestFiles(named)
    : ['packages/testkit/test/postgres-source.test.ts', ...storageSuites()]

const source = containerSource()
try {
  const url = await source.start()
  const run = await runTap(suites, {
    ROUSE_TEST_POSTGRES: 'container',
    ROUSE_TEST_DATABASE_URL: url,
  })
  process.exitCode = reportRuns([run])
} catch (error) {
  console.error(error.message)
  process.exitCode = 1
} finally {
  await source.stop().catch(() => {})
}
