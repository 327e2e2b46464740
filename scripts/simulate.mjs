// `npm run simulate -- --nodes 10 --seeds 1000 --seed 1` runs gossip of whole clusters in virtual time.
import { join } from 'node:path'
import { runOrExit } from './run.mjs'
import { setup } from './setup.mjs'

await setup()
await runOrExit(process.execPath, [
  '--import',
  'tsx',
  '--conditions=@rouse/source',
  join('packages', 'gossip', 'test', 'simulation', 'run.ts'),
  ...process.argv.slice(2),
])
