// Bundles tap for test processes: one file instead of 270 modules, and a code cache. The start of a test
// process takes 0.25 s of CPU less, and a run starts several hundred.
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { build } from 'esbuild'
import { root } from '../run.mjs'
import { launcher, writeBundle } from './write-bundle.mjs'

/** tap leaves out frames of files in folders with this name when it prints a stack. */
const folder = join(root, 'node_modules/.cache/rouse-tap/node_modules/@tapjs/core')

/** Returns the URL of a module with the exports of tap. */
export async function bundleTap() {
  const { outputFiles } = await build({
    stdin: { contents: "module.exports = require('tap')", resolveDir: root },
    bundle: true,
    write: false,
    platform: 'node',
    format: 'cjs',
    target: 'node20',
    supported: { 'dynamic-import': false }, // as in bundle-node.mjs
    logLevel: 'error',
  })
  const main = writeBundle(folder, outputFiles[0], { name: 'tap.mjs', text: moduleText })
  return pathToFileURL(main).href
}

/** The names that tests import. */
function moduleText(script) {
  return `import { createRequire } from 'node:module'
const tap = createRequire(import.meta.url)(${launcher}).runBundle(${JSON.stringify(script)}, 'test')
export const { t, Test, test } = tap
export default t
`
}
