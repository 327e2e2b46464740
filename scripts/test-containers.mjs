// `npm run test:containers`: the suites that speak to PostgreSQL, on a container of the official
// image in place of the embedded server.
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { root } from './run.mjs'
import { runTap } from './run-tap.mjs'
import { setup } from './setup.mjs'

await setup()
const { containerSource } = await import('../packages/testkit/dist/index.js')
const storage = readdirSync(join(root, 'test', 'storage'))
  .filter((name) => name.endsWith('.test.ts'))
  .map((name) => `test/storage/${name}`)
const suites = ['packages/testkit/test/postgres-source.test.ts', ...storage]

const source = containerSource()
try {
  const url = await source.start()
  process.exitCode = await runTap(suites, {
    ROUSE_TEST_POSTGRES: 'container',
    ROUSE_TEST_DATABASE_URL: url,
  })
} catch (error) {
  console.error(error.message)
  process.exitCode = 1
} finally {
  await source.stop().catch(() => {})
}
