// The published packages, as tarballs. `npm run test:packages` installs and uses them; these tests need no
// registry.
import { execFile } from 'node:child_process'
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { builtinModules } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { t as root, test } from 'tap'

const exec = promisify(execFile)
const bin = fileURLToPath(new URL('../node_modules/.bin', import.meta.url))
const folder = mkdtempSync(join(tmpdir(), 'rouse-packages-test-'))
root.teardown(() => rmSync(folder, { recursive: true }))

const pack = fileURLToPath(new URL('../scripts/pack/pack.mjs', import.meta.url))
await exec(process.execPath, [pack, '--built', join(folder, 'tarballs')])
const tarballs = readdirSync(join(folder, 'tarballs')).map((name) => join(folder, 'tarballs', name))
const client = await unpack('@rouse/client', /rouse-client-/)
const rouse = await unpack('rouse', /rouse-\d/)

async function unpack(name: string, file: RegExp): Promise<string> {
  const target = join(folder, 'node_modules', name)
  mkdirSync(target, { recursive: true })
  const [tarball = ''] = tarballs.filter((path) => file.test(path))
  await exec('tar', ['-xzf', tarball, '-C', target, '--strip-components', '1'])
  return target
}

test('publint finds no problem in either package', async (t) => {
  for (const file of tarballs) {
    const { stdout } = await exec(join(bin, 'publint'), ['run', file, '--strict'])
    t.match(stdout, 'All good!')
  }
})

test('both packages have a license, a repository and keywords', async (t) => {
  for (const path of [client, rouse]) {
    const manifest = JSON.parse(readFileSync(join(path, 'package.json'), 'utf8'))
    t.match(manifest, { license: 'MIT', repository: { type: 'git' }, engines: { node: '>=20.19' } })
    t.ok(manifest.keywords.includes('postgresql'))
    t.match(readFileSync(join(path, 'LICENSE'), 'utf8'), 'MIT License')
    t.ok(readFileSync(join(path, 'README.md'), 'utf8').length > 0)
  }
})

/** Static imports and exports, and dynamic imports. */
const importOfPackage =
  /^(?:import |export |\} )(?:[^'"\n]*from )?['"]([^.'"][^'"]*)['"]|\bimport\(['"]([^.'"][^'"]*)['"]\)/gm

test('rouse imports only files of its own, its dependencies and modules of Node', async (t) => {
  const manifest = JSON.parse(readFileSync(join(rouse, 'package.json'), 'utf8'))
  const declared = new Set(Object.keys(manifest.dependencies))
  const imported = new Set<string>()
  for (const path of filesIn(rouse).filter((one) => one.endsWith('.js'))) {
    const text = readFileSync(path, 'utf8')
    for (const [, named, loaded] of text.matchAll(importOfPackage)) {
      const specifier = named ?? loaded ?? ''
      if (specifier.startsWith('node:')) continue
      imported.add(specifier.replace(/^((?:@[^/]+\/)?[^/]+).*$/, '$1'))
    }
  }
  t.same(
    [...imported].filter((name) => !declared.has(name) && !builtinModules.includes(name)),
    [],
  )
  t.ok(imported.has('pg') && imported.has('fastify'))
  for (const range of Object.values(manifest.dependencies)) t.notMatch(range, /workspace|catalog/)
})

test('rouse contains every migration and function', async (t) => {
  const source = fileURLToPath(new URL('../migrations', import.meta.url))
  const names = (path: string): string[] =>
    filesIn(path)
      .map((file) => file.slice(path.length))
      .sort()
  t.same(names(join(rouse, 'migrations')), names(source))
})

test('rouse contains the dashboard where the node looks for it', async (t) => {
  const built = readdirSync(join(rouse, 'apps/dashboard/dist')).sort()
  t.same(built, ['app.css', 'app.js', 'favicon.svg', 'index.html'])
})

test('the client loads as ES module and as CommonJS, and each knows the errors of the other', async (t) => {
  writeFileSync(
    join(folder, 'both.mjs'),
    `import { createRequire } from 'node:module'
     import { PartialPushError, RouseError } from '@rouse/client'
     const common = createRequire(import.meta.url)('@rouse/client')
     const error = new common.RouseError('closed', 'text')
     console.log(JSON.stringify([
       common.RouseError === RouseError, error instanceof RouseError, new Error() instanceof RouseError,
       error instanceof PartialPushError, typeof new common.Rouse({ urls: 'http://127.0.0.1:1' }).queue,
     ]))`,
  )
  const { stdout } = await exec(process.execPath, [join(folder, 'both.mjs')])
  t.same(JSON.parse(stdout), [false, true, false, false, 'function'])
})

for (const [module, type] of [
  ['nodenext', 'module'],
  ['node16', 'commonjs'],
  ['bundler', 'module'],
] as const) {
  test(`the types of the client are found with ${module} from a package of type ${type}`, async (t) => {
    const project = join(folder, module)
    const resolution =
      module === 'bundler' ? { module: 'esnext', moduleResolution: module } : { module }
    const compilerOptions = {
      target: 'es2022',
      lib: ['es2023', 'dom'],
      types: [],
      strict: true,
      noEmit: true,
      ...resolution,
    }
    mkdirSync(project)
    writeFileSync(join(project, 'package.json'), JSON.stringify({ private: true, type }))
    writeFileSync(join(project, 'main.ts'), typedProgram)
    writeFileSync(
      join(project, 'tsconfig.json'),
      JSON.stringify({ compilerOptions, files: ['main.ts'] }),
    )
    const run = exec(join(bin, 'tsc'), ['-p', project])
    t.equal(
      await run.then(
        ({ stdout }) => stdout,
        ({ stdout }: { stdout: string }) => stdout,
      ),
      '',
    )
  })
}

const typedProgram = `
import { Rouse, type Message } from '@rouse/client'
const rouse = new Rouse<{ emails: { to: string } }>({ urls: 'http://127.0.0.1:4600' })
export const id: Promise<string> = rouse.queue('emails').push({ to: 'ann' }, { delay: '10m' }).then(({ id }) => id)
export const toOf = (message: Message<{ to: string }>): string => message.data.to
// @ts-expect-error: a payload of another type
void rouse.queue('emails').push({ to: 1 })
`

function filesIn(path: string): string[] {
  return readdirSync(path, { withFileTypes: true }).flatMap((entry) => {
    const inner = join(path, entry.name)
    return entry.isDirectory() ? filesIn(inner) : [inner]
  })
}
