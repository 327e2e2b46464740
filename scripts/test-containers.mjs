// `npm run test:containers`: the suites that speak to PostgreSQL, on a container of the official
// image in place of the embedded server.
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { root, runOrExit } from './run.mjs'
import { setup } from './setup.mjs'

await setup()
const suites = ['packages/testkit/test/postgres-source.test.ts']
if (existsSync(join(root, 'test', 'storage'))) suites.push('test/storage')
await runOrExit('tap', suites, { ROUSE_TEST_POSTGRES: 'container' })
