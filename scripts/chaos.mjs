// `npm run chaos -- --seconds 60 --seed 7` breaks a cluster under load; docs/chaos.md says what it can do.
import { join } from 'node:path'
import { runOrExit } from './run.mjs'
import { setup } from './setup.mjs'

await setup()
await runOrExit(process.execPath, [
  '--import',
  'tsx',
  '--conditions=@rouse/source',
  join('test', 'chaos', 'chaos-command.ts'),
  ...process.argv.slice(2),
])
