// The published package.
import { execFile } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { dirname, posix } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { gzipSync } from 'node:zlib'
import { build } from 'esbuild'
import { test } from 'tap'

const root = fileURLToPath(new URL('..', import.meta.url))
const manifest = JSON.parse(readFileSync(`${root}/package.json`, 'utf8'))
const gzippedBytesMax = 16_000

async function bundle(
  platform: 'browser' | 'node',
  contents = `export * from '@rouse/client'`,
): Promise<string> {
  const { outputFiles } = await build({
    stdin: { contents, resolveDir: root },
    bundle: true,
    format: 'esm',
    minify: true,
    platform,
    write: false,
  })
  return outputFiles[0]?.text ?? ''
}

/** The files of the package. */
const paths = await packedPaths()

async function packedPaths(): Promise<string[]> {
  const { stdout } = await promisify(execFile)('npm', ['pack', '--dry-run', '--json'], {
    cwd: root,
  })
  const [{ files }] = JSON.parse(stdout) as [{ files: { path: string }[] }]
  return files.map(({ path }) => path)
}

test('the package has no dependencies; only its entry otel has a peer, which is optional', async (t) => {
  t.equal(manifest.dependencies, undefined)
  t.same(Object.keys(manifest.peerDependencies), ['@opentelemetry/api'])
  t.same(manifest.peerDependenciesMeta, { '@opentelemetry/api': { optional: true } })
  for (const path of paths) {
    if (!path.endsWith('.js') || /^dist\/(cjs\/)?otel\//.test(path)) continue
    t.notOk(readFileSync(`${root}/${path}`, 'utf8').includes('@opentelemetry'), path)
  }
})

test('the package contains both builds, types, source maps, sources, license and README', async (t) => {
  const built = ['index.js', 'index.js.map', 'index.d.ts', 'index.d.ts.map']
  for (const path of [
    'package.json',
    'README.md',
    'LICENSE',
    'src/index.ts',
    'dist/cjs/package.json',
    ...built.flatMap((file) => [`dist/${file}`, `dist/cjs/${file}`]),
  ]) {
    t.ok(paths.includes(path), path)
  }
  const file = String.raw`([a-z-]+\/)?[a-z-]+`
  const odd = paths.filter(
    (path) =>
      !new RegExp(
        `^(package\\.json|README\\.md|LICENSE|dist/cjs/package\\.json|src/${file}\\.ts|dist/(cjs/)?${file}(\\.d\\.ts|\\.js)(\\.map)?)$`,
      ).test(path),
  )
  t.same(odd, [])
})

test('every source map names a source that is in the package', async (t) => {
  const maps = paths.filter((path) => path.endsWith('.map'))
  t.ok(maps.length > 50)
  for (const path of maps) {
    const { sources } = JSON.parse(readFileSync(`${root}/${path}`, 'utf8'))
    t.ok(paths.includes(posix.join(dirname(path), sources[0])), path)
  }
})

test('the types of the package need no other package', async (t) => {
  for (const path of paths) {
    if (!path.startsWith('dist/')) continue
    t.notOk(readFileSync(`${root}/${path}`, 'utf8').includes('@rouse/protocol'), path)
  }
})

test('the browser bundle is small and uses no Node modules', async (t) => {
  const text = await bundle('browser')
  const bytes = gzipSync(text).length
  t.ok(bytes <= gzippedBytesMax, `${bytes} bytes gzipped`)
  t.notOk(/["']node:|Buffer\./.test(text))
  t.ok(text.includes('await fetch('))
})

test('a browser bundle of a CommonJS program uses fetch, too', async (t) => {
  const text = await bundle('browser', `module.exports = require('@rouse/client').Rouse`)
  t.notOk(/["']node:|Buffer\./.test(text))
  t.ok(text.includes('await fetch('))
})

test('the Node entry uses node:http', async (t) => {
  t.ok((await bundle('node')).includes('"node:http"'))
})

test('importing the package installs no signal handlers', async (t) => {
  const before = process.eventNames()
  await import('../src/index.ts')
  t.same(process.eventNames(), before)
})
