// `npm run model -- --minutes 10 --seed 7` checks the product against a model of the whole API; see
// docs/testing.md.
import { join } from 'node:path'
import { runOrExit } from './run.mjs'
import { setup } from './setup.mjs'

await setup()
await runOrExit(process.execPath, [
  '--import',
  'tsx',
  '--conditions=@rouse/source',
  join('test', 'model', 'model-command.ts'),
  ...process.argv.slice(2),
])
