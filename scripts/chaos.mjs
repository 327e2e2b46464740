// `npm run chaos -- --seconds 60 --seed 7` injects faults into a cluster under load; see docs/chaos.md.
import { join } from 'node:path'
import { runOrExit } from './run.mjs'
import { setup } from './setup.mjs'

await setup()
await runOrExit(process.execPath, [
  `--import=${new URL('typescript/register.mjs', import.meta.url).href}`,
  '--conditions=@rouse/source',
  join('test', 'chaos', 'chaos-command.ts'),
  ...process.argv.slice(2),
])
