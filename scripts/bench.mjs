// `npm run bench -- <name> [options]` runs test/bench/<name>/<name>.ts against the built packages.
import { existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { root, runOrExit } from './run.mjs'
import { setup } from './setup.mjs'

const [name, ...options] = process.argv.slice(2)
const names = readdirSync(join(root, 'test', 'bench')).filter((folder) =>
  existsSync(join(root, programOf(folder))),
)
if (!names.includes(name)) {
  const problem = name === undefined ? '' : `unknown benchmark ${name}; `
  console.error(
    `${problem}usage: npm run bench -- <name> [options]; benchmarks: ${names.join(', ')}`,
  )
  process.exit(1)
}

await setup()
await runOrExit(process.execPath, ['--import', 'tsx', programOf(name), ...options])

function programOf(bench) {
  return join('test', 'bench', bench, `${bench}.ts`)
}
