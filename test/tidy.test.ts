// Rules of this repository that neither the compiler nor the linters check. One test per rule.
import { readdirSync, readFileSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { type Test, test } from 'tap'

interface SourceFile {
  readonly path: string
  readonly text: string
}

const root = fileURLToPath(new URL('..', import.meta.url))
const generated = new Set(['node_modules', 'dist', '.git', '.rouse', '.tap', '.turbo', 'site'])
const files = readFiles('')
const source = files.filter(({ path }) => /^(apps|packages)\/[^/]+\/src\/.*\.ts$/.test(path))
const shipped = source.filter(({ path }) => !path.startsWith('packages/testkit/'))

const sqlFunctions = files.filter(({ path }) => /^migrations\/functions\/.*\.sql$/.test(path))

/** Files with text that people read, except for LICENSE and for migrations, which must not be edited. */
const prose = files.filter(
  ({ path }) =>
    /\.(ts|mjs|js|sql|md|yml|c|cfg|conf|json)$/.test(path) && !/^migrations\/\d{4}_/.test(path),
)

const lineCountMax = 400
const folderFilesMax = 22
const readmeLineCountMax = 60
const architectureLineCountMax = 200

test('no file has a name without content, such as utils or common', async (t) => {
  const vague = /^(utils?|common|helpers?|types|misc)(\.|$)/
  none(
    t,
    files.filter(({ path }) => path.split('/').some((part) => vague.test(part))),
  )
})

test('only clock.ts and config.ts read the time; others get it passed in', async (t) => {
  const allowed = new Set(['clock.ts', 'config.ts'])
  none(
    t,
    shipped.filter(
      (file) => !allowed.has(basename(file.path)) && /\bDate\.now\(|new Date\(\)/.test(file.text),
    ),
  )
})

test('randomness is passed in', async (t) => {
  none(
    t,
    shipped.filter(({ text }) => text.includes('Math.random(')),
  )
})

test('only config.ts reads the environment', async (t) => {
  // This file passes the environment on to child processes without reading anything from it.
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

/** One function: the loop of a pop, whose parts share its variables. */
const longest = 'migrations/functions/pop/pop_general.sql'

test('no file is longer than 400 lines', async (t) => {
  none(
    t,
    files.filter(
      ({ path, text }) =>
        /\.(ts|mjs|sql)$/.test(path) && path !== longest && lineCount(text) > lineCountMax,
    ),
  )
})

test('no folder of sources or tests has more than 22 files', async (t) => {
  const counts = new Map<string, number>()
  for (const { path } of files) {
    if (!/^(apps|packages|test|scripts|migrations)\/.*\.(ts|mjs|sql)$/.test(path)) continue
    counts.set(dirname(path), (counts.get(dirname(path)) ?? 0) + 1)
  }
  const full = [...counts].filter(([folder, count]) => {
    // Released migrations are never joined, so their folder grows.
    return count > folderFilesMax && folder !== 'migrations'
  })
  t.same(
    full.map(([folder, count]) => `${folder}: ${count} files`),
    [],
  )
})

test('no text uses an archaic or private phrase', async (t) => {
  const phrases = [
    /\banew\b/i,
    /\bwhoever\b/i,
    /\bwhatever comes\b/i,
    /\bshall\b/i,
    /\b(?:tell|tells|told|telling) of\b/i,
    /\b(?:hear|hears|heard|hearing) of\b/i,
    /\bgoodbye\b/i,
    // In backticks, the word is the name of a Unix user.
    /(?<!`)\b(?:some|no)body\b(?!`)/i,
    /\bis no \w+ of\b/i,
    /\bheed(?:s|ed|ing)?\b/i,
    /\bin the hands of\b/i,
    // These phrases usually lack the noun that they measure.
    /\bso (?:long|many)\b/i,
  ]
  const found = prose.flatMap(({ path, text }) =>
    text.split('\n').flatMap((line, i) => {
      const phrase = phrases.map((one) => one.exec(line)?.[0]).find((one) => one !== undefined)
      return phrase === undefined ? [] : [`${path}:${i + 1}: ${phrase}`]
    }),
  )
  t.same(found, [])
})

test('every package has a README of at most 60 lines', async (t) => {
  const packages = files.filter(({ path }) => /^(apps|packages)\/[^/]+\/package\.json$/.test(path))
  none(
    t,
    packages.filter(({ path }) => {
      const readme = textOf(path.replace('package.json', 'README.md'))
      return readme === undefined || lineCount(readme) > readmeLineCountMax
    }),
  )
})

test('an index names its exports one by one', async (t) => {
  none(
    t,
    source.filter(({ path, text }) => path.endsWith('/index.ts') && /^export \*/m.test(text)),
  )
})

test('ARCHITECTURE.md has at most 200 lines', async (t) => {
  t.ok(lineCount(textOf('ARCHITECTURE.md') ?? '') <= architectureLineCountMax)
})

test('every file that ARCHITECTURE.md names exists', async (t) => {
  const named = /`([\w./-]+\.(?:ts|mjs|sql|md|yml))`/g
  const names = [...(textOf('ARCHITECTURE.md') ?? '').matchAll(named)].map(([, name = '']) => name)
  t.ok(names.length > 20, 'it names files')
  const missing = names.filter((name) => !files.some(({ path }) => `/${path}`.endsWith(`/${name}`)))
  t.same(missing, [])
})

test('every file that a document names in full, or links to, exists', async (t) => {
  const documents = files.filter(({ path }) => path.endsWith('.md') && path !== 'CHANGELOG.md')
  const missing = documents.flatMap(({ path, text }) => {
    const named = [
      ...text.matchAll(/`((?:apps|packages|test|scripts|migrations|docs)\/[\w./-]+\.\w+)`/g),
    ]
    const linked = [...text.matchAll(/\]\(([\w./-]+)\)/g)]
    const targets = [
      ...named.map(([, name = '']) => name).filter((name) => !name.includes('NNNN')),
      ...linked.map(([, link = '']) => join(dirname(path), link)),
    ]
    return targets.filter((target) => !exists(target)).map((target) => `${path}: ${target}`)
  })
  t.same(missing, [])
})

test('every storage rule names a test that exists', async (t) => {
  const rules = [
    ...(textOf('docs/storage.md') ?? '').matchAll(/`([\w/-]+\.test\.ts)`:\s+\*([^*]+)\*/g),
  ]
  t.equal(rules.length, 27)
  const missing = rules.filter(([, file, title = '']) => {
    return !textOf(`test/storage/${file}`)?.includes(title.replaceAll(/\s+/g, ' '))
  })
  t.same(missing, [])
})

test('every file that docs/concepts.md names exists', async (t) => {
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

test('no file contains a path of the machine it was written on', async (t) => {
  // The paths are assembled here, because this file must not contain them either.
  const machinePaths = ['work', 'root'].map((folder) => `/${folder}/`)
  none(
    t,
    files.filter(({ text }) => machinePaths.some((path) => text.includes(path))),
  )
})

test('no file fixes the package registry', async (t) => {
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

function exists(path: string): boolean {
  return files.some((file) => file.path === path || file.path.startsWith(`${path}/`))
}

/** Removes comment lines, because a comment may name an SQL statement. */
function withoutComments(text: string): string {
  return text.replaceAll(/^\s*(\/\/|\/?\*).*$/gm, '')
}

function lineCount(text: string): number {
  return text.replace(/\n$/, '').split('\n').length
}

/** Fails with the paths of the files that break the rule. */
function none(t: Test, offenders: readonly SourceFile[]): void {
  t.same(
    offenders.map(({ path }) => path),
    [],
  )
}
