// `npm run growth -- --minutes 20` runs a cluster under a fixed load and reports what has grown; see
// docs/growth.md.
import { join } from 'node:path'
import { runOrExit } from './run.mjs'
import { setup } from './setup.mjs'

await setup()
await runOrExit(process.execPath, [
  '--import',
  'tsx',
  '--conditions=@rouse/source',
  join('test', 'growth', 'run', 'growth-command.ts'),
  ...process.argv.slice(2),
])
