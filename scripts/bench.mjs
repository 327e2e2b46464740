// `npm run bench -- <name> [options]` runs test/bench/<name>.ts against the built packages.
import { existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { root, runOrExit } from './run.mjs'
import { setup } from './setup.mjs'

const [name, ...options] = process.argv.slice(2)
const folder = join(root, 'test', 'bench')
if (name === undefined || !existsSync(join(folder, `${name}.ts`))) {
  const names = existsSync(folder)
    ? readdirSync(folder).filter((file) => file.endsWith('.ts') && !file.endsWith('.test.ts'))
    : []
  const known = names.map((file) => file.slice(0, -3)).join(', ') || 'none yet'
  console.error(`usage: npm run bench -- <name> [options]; benchmarks: ${known}`)
  process.exit(1)
}

await setup()
await runOrExit(process.execPath, [
  '--import',
  'tsx',
  join('test', 'bench', `${name}.ts`),
  ...options,
])
