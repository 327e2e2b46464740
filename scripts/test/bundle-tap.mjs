// Bundles tap for test processes: one file instead of 270 modules, and a code cache. The start of a test
// process takes 0.25 s of CPU less, and a run starts several hundred.
import { join } from 'node:path'
import { build } from 'esbuild'
import { root } from '../run.mjs'
import { launcher, writeBundle } from './write-bundle.mjs'

/** tap leaves out frames of files in folders with this name when it prints a stack. */
const folder = join(root, 'node_modules/.cache/rouse-tap/node_modules/@tapjs/core')

/** Returns the path of a CommonJS module with the exports of tap. */
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
  return writeBundle(folder, outputFiles[0], { name: 'tap.cjs', text: moduleText })
}

function moduleText(script) {
  return `module.exports = require(${launcher}).runBundle(${JSON.stringify(script)}, 'test')\n`
}
