// The published package.
import { execFile } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { gzipSync } from 'node:zlib'
import { build } from 'esbuild'
import { test } from 'tap'

const root = fileURLToPath(new URL('..', import.meta.url))
const manifest = JSON.parse(readFileSync(`${root}/package.json`, 'utf8'))
const gzippedBytesMax = 15_000

async function bundle(platform: 'browser' | 'node'): Promise<string> {
  const { outputFiles } = await build({
    entryPoints: [`${root}/dist/index.js`],
    bundle: true,
    format: 'esm',
    minify: true,
    platform,
    write: false,
  })
  return outputFiles[0]?.text ?? ''
}

test('the package has no dependencies', async (t) => {
  t.equal(manifest.dependencies, undefined)
  t.equal(manifest.peerDependencies, undefined)
})

test('the package contains the built files, their types, the manifest and the README', async (t) => {
  const { stdout } = await promisify(execFile)('npm', ['pack', '--dry-run', '--json'], {
    cwd: root,
  })
  const [{ files }] = JSON.parse(stdout) as [{ files: { path: string }[] }]
  const paths = files.map(({ path }) => path)
  for (const path of ['package.json', 'README.md', 'dist/index.js', 'dist/index.d.ts']) {
    t.ok(paths.includes(path), path)
  }
  const odd = paths.filter(
    (path) => !/^(package\.json|README\.md|dist\/([a-z-]+\/)?[a-z-]+(\.d\.ts|\.js))$/.test(path),
  )
  t.same(odd, [])
})

test('the types of the package need no other package', async (t) => {
  const { stdout } = await promisify(execFile)('npm', ['pack', '--dry-run', '--json'], {
    cwd: root,
  })
  const [{ files }] = JSON.parse(stdout) as [{ files: { path: string }[] }]
  for (const { path } of files) {
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

test('the Node entry uses node:http', async (t) => {
  t.ok((await bundle('node')).includes('"node:http"'))
})

test('importing the package installs no signal handlers', async (t) => {
  const before = process.eventNames()
  await import('../src/index.ts')
  t.same(process.eventNames(), before)
})
