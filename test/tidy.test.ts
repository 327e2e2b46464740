// The rules of the house that neither the compiler nor the linters can see. One test, one rule.
import { readdirSync, readFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { type Test, test } from 'tap'

interface SourceFile {
  readonly path: string
  readonly text: string
}

const root = fileURLToPath(new URL('..', import.meta.url))
const generated = new Set(['node_modules', 'dist', '.git', '.rouse', '.tap', '.turbo'])
const files = readFiles('')
const source = files.filter(({ path }) => /^(apps|packages)\/[^/]+\/src\/.*\.ts$/.test(path))
const shipped = source.filter(({ path }) => !path.startsWith('packages/testkit/'))

const sqlFunctions = files.filter(({ path }) => /^migrations\/functions\/.*\.sql$/.test(path))

const lineCountMax = 400
const readmeLineCountMax = 60
const architectureLineCountMax = 200

test('no file is named after nothing in particular', async (t) => {
  const empty = /^(utils?|common|helpers?|types|misc)(\.|$)/
  none(
    t,
    files.filter(({ path }) => path.split('/').some((part) => empty.test(part))),
  )
})

test('time is read in clock.ts only, and handed on', async (t) => {
  const allowed = new Set(['clock.ts', 'config.ts'])
  none(
    t,
    shipped.filter(
      (file) => !allowed.has(basename(file.path)) && /\bDate\.now\(|new Date\(\)/.test(file.text),
    ),
  )
})

test('randomness is handed in, too', async (t) => {
  none(
    t,
    shipped.filter(({ text }) => text.includes('Math.random(')),
  )
})

test('the environment is read in config.ts only', async (t) => {
  // Passes the environment on to child processes without reading anything from it.
  const passesOn = 'packages/database/src/embedded/server-environment.ts'
  none(
    t,
    shipped.filter(({ path, text }) => {
      return basename(path) !== 'config.ts' && path !== passesOn && text.includes('process.env')
    }),
  )
})

test('SQL text is in .sql files, in packages/storage and in statements only', async (t) => {
  const home = /^packages\/storage\/src\/|\/([a-z-]+-)?statements[a-z-]*\.ts$|\/migrat[a-z-]*\.ts$/
  const sql =
    /['"`]\s*(select|insert into|delete from|update [\w."]+ set|with \w+ as|(create|alter|drop) (table|function|index|schema|database)|set local|listen|notify) /
  none(
    t,
    shipped.filter((file) => !home.test(file.path) && sql.test(withoutComments(file.text))),
  )
})

test('every SQL function file opens with its purpose', async (t) => {
  none(
    t,
    sqlFunctions.filter(({ text }) => !/^-- \S/.test(text)),
  )
})

test('every SQL function says above it which locks it takes', async (t) => {
  none(
    t,
    sqlFunctions.filter(({ text }) => {
      const heads = text.matchAll(/((?:^--.*\n)*)^create (?:or replace )?function/gm)
      return [...heads].some(([, comment = '']) => !/\bLocks: \S/.test(comment))
    }),
  )
})

test('a file fits into one reading', async (t) => {
  none(
    t,
    files.filter(
      ({ path, text }) => /\.(ts|mjs|sql)$/.test(path) && lineCount(text) > lineCountMax,
    ),
  )
})

test('every package has a short README', async (t) => {
  const packages = files.filter(({ path }) => /^(apps|packages)\/[^/]+\/package\.json$/.test(path))
  none(
    t,
    packages.filter(({ path }) => {
      const readme = textOf(path.replace('package.json', 'README.md'))
      return readme === undefined || lineCount(readme) > readmeLineCountMax
    }),
  )
})

test('an index lists what it exports', async (t) => {
  none(
    t,
    source.filter(({ path, text }) => path.endsWith('/index.ts') && /^export \*/m.test(text)),
  )
})

test('the architecture can be read in one sitting', async (t) => {
  t.ok(lineCount(textOf('ARCHITECTURE.md') ?? '') <= architectureLineCountMax)
})

test('what the architecture says is in a file is there', async (t) => {
  const named = /`([\w./-]+\.(?:ts|mjs|sql|md|yml))`/g
  const names = [...(textOf('ARCHITECTURE.md') ?? '').matchAll(named)].map(([, name = '']) => name)
  t.ok(names.length > 20, 'it names files')
  const missing = names.filter((name) => !files.some(({ path }) => `/${path}`.endsWith(`/${name}`)))
  t.same(missing, [])
})

test('every storage rule names a test that exists', async (t) => {
  const rules = [
    ...(textOf('docs/storage.md') ?? '').matchAll(/`([\w/-]+\.test\.ts)`:\s+\*([^*]+)\*/g),
  ]
  t.equal(rules.length, 20)
  const missing = rules.filter(([, file, title = '']) => {
    return !textOf(`test/storage/${file}`)?.includes(title.replaceAll(/\s+/g, ' '))
  })
  t.same(missing, [])
})

test('every file that the concepts name exists', async (t) => {
  const named = [...(textOf('docs/concepts.md') ?? '').matchAll(/`([\w./-]+\.(?:ts|sql))`/g)]
  t.ok(named.length > 9)
  t.same(
    named.filter(([, file = '']) => textOf(file) === undefined),
    [],
  )
})

test('every setting of a node is explained in docs', async (t) => {
  const settings = textOf('apps/broker/src/config/settings.ts') ?? ''
  const names = [...settings.matchAll(/'([A-Z]+(?:_[A-Z]+)+)'/g)].map(([, name = '']) => name)
  t.ok(names.length > 50, 'there are settings')
  const docs = files.filter(({ path }) => /^docs\/.*\.md$/.test(path)).map(({ text }) => text)
  const unexplained = names.filter((name) => !docs.some((text) => text.includes(`${name}\``)))
  t.same(unexplained, [])
})

test('nothing here knows the machine it was written on', async (t) => {
  // Put together here, or this file would be the first to break the rule.
  const machinePaths = ['work', 'root'].map((folder) => `/${folder}/`)
  none(
    t,
    files.filter(({ text }) => machinePaths.some((path) => text.includes(path))),
  )
})

test('packages come from the registry of whoever installs them', async (t) => {
  none(
    t,
    files.filter(({ path }) => basename(path) === '.npmrc'),
  )
  t.notMatch(textOf('pnpm-lock.yaml'), /https?:\/\/|tarball:/)
})

function readFiles(folder: string): SourceFile[] {
  return readdirSync(join(root, folder), { withFileTypes: true }).flatMap((entry) => {
    const path = folder === '' ? entry.name : `${folder}/${entry.name}`
    if (generated.has(entry.name)) return []
    if (entry.isDirectory()) return readFiles(path)
    return entry.isFile() ? [{ path, text: readFileSync(join(root, path), 'utf8') }] : []
  })
}

function textOf(path: string): string | undefined {
  return files.find((file) => file.path === path)?.text
}

/** Whole lines only: prose may name a statement. */
function withoutComments(text: string): string {
  return text.replaceAll(/^\s*(\/\/|\/?\*).*$/gm, '')
}

function lineCount(text: string): number {
  return text.replace(/\n$/, '').split('\n').length
}

/** Fails with the paths of those that break the rule. */
function none(t: Test, offenders: readonly SourceFile[]): void {
  t.same(
    offenders.map(({ path }) => path),
    [],
  )
}
