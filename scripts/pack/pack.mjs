// `npm run pack [-- --built] [FOLDER]`: builds, unless everything is built, and writes the two published
// packages as tarballs: `rouse` (command line, node and migrations) and `@rouse/client`. Default folder: dist.
import { join, resolve } from 'node:path'
import { root } from '../run.mjs'
import { setup } from '../setup.mjs'
import { packAll } from './pack-all.mjs'

const args = process.argv.slice(2)
if (!args.includes('--built')) await setup()
const folder = resolve(args.find((arg) => arg !== '--built') ?? join(root, 'dist'))
for (const { file, bytes, files } of await packAll(folder)) {
  console.log(`${file}  ${(bytes / 1_000).toFixed(0)} kB, ${files} files`)
}
