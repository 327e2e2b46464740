// The documentation as text: links lead somewhere, words are spelled right, blocks are run or say why not, and
// the generated pages are up to date.
import { execFile } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { errorRegistry } from '@rouse/protocol'
import en from 'dictionary-en'
import enGb from 'dictionary-en-gb'
import nspell from 'nspell'
import { test } from 'tap'
import { anchorsOf, blocksOf, linksOf, proseOf, readPages, root } from './support/pages.ts'

const pages = readPages()
const users = pages.filter(({ path }) => !/^docs\/(decisions|reference)\//.test(path))
const timeout = 120_000

test('every link leads to a file, and to a heading of it', async (t) => {
  const wrong = pages.flatMap((page) =>
    linksOf(page).flatMap(({ target, anchor }) => {
      const link = `${page.path}: ${target}${anchor === undefined ? '' : `#${anchor}`}`
      if (!existsSync(join(root, target))) return [link]
      const known = pages.find(({ path }) => path === target)
      if (anchor === undefined || known === undefined) return []
      return anchorsOf(known).has(anchor) ? [] : [link]
    }),
  )
  t.same(wrong, [])
})

test('docs/README.md leads to every page', async (t) => {
  const index = pages.find(({ path }) => path === 'docs/README.md')
  const linked = index === undefined ? [] : linksOf(index).map(({ target }) => target)
  const missing = pages
    .map(({ path }) => path)
    .filter((path) => path.startsWith('docs/') && !path.startsWith('docs/decisions/'))
    .filter((path) => path !== 'docs/README.md' && !linked.includes(path))
  t.same(missing, [])
})

/** `npm test` runs blocks with the note `test`, and `npm run test:compose` those with `test compose`. */
test('every block of a program is run, or says why it is not', async (t) => {
  const silent = users.flatMap((page) =>
    blocksOf(page)
      .filter(({ language }) => ['sh', 'ts', 'js', 'sql'].includes(language))
      .filter(({ note }) => !/^(test|test compose|not run: \S.*)$/.test(note))
      .map(({ line }) => `${page.path}:${line}`),
  )
  t.same(silent, [])
})

/** An indented block has no mark. Those of README.md are commands that apps/broker/test/readme.test.ts runs. */
test('every block has a fence', async (t) => {
  const indented = users
    .filter(({ path }) => path !== 'README.md')
    .flatMap(({ path, text }) => {
      const prose = text.replaceAll(/^```[\s\S]*?^```$/gm, (block) =>
        block.replaceAll(/[^\n]/g, ''),
      )
      return [...prose.matchAll(/^\n {4}(?![ \d*-])/gm)].map(
        ({ index }) => `${path}:${prose.slice(0, index).split('\n').length + 1}`,
      )
    })
  t.same(indented, [])
})

test('words are spelled right (add names and terms to test/docs/words.txt)', {
  timeout,
}, async (t) => {
  const dictionaries = [en, enGb].map(({ aff, dic }) =>
    nspell(String(Buffer.from(aff)), String(Buffer.from(dic))),
  )
  const terms = new Set(
    readFileSync(new URL('words.txt', import.meta.url), 'utf8')
      .toLowerCase()
      .split('\n'),
  )
  const known = new Map<string, boolean>()
  const isKnown = (word: string): boolean => {
    const isRight =
      known.get(word) ??
      (terms.has(word.toLowerCase()) || dictionaries.some((one) => one.correct(word)))
    known.set(word, isRight)
    return isRight
  }
  const wrong = users.flatMap((page) =>
    proseOf(page)
      .split('\n')
      .flatMap((line, i) =>
        (line.match(/\p{L}[\p{L}’']*\p{L}/gu) ?? [])
          .filter((word) => !isKnown(word) && !/\p{Lu}.*\p{Lu}/u.test(word))
          .map((word) => `${page.path}:${i + 1}: ${word}`),
      ),
  )
  t.same(wrong, [])
  t.notOk(
    dictionaries.some((one) => one.correct('recieve')),
    'an error is found',
  )
})

/** Pages that show the inside of a node refer to docs/concepts.md, or are for contributors. */
const inside = /^docs\/(chaos|concepts|events|growth|metrics|storage|testing)\.md$/

test('pages for users do without the words of contributors', async (t) => {
  const found = users
    .filter(({ path }) => /^(docs|cluster-config)\//.test(path) && !inside.test(path))
    .flatMap((page) =>
      proseOf(page)
        .split('\n')
        .flatMap((line, i) =>
          (line.match(/\b(hint|lane|sidecar|wait group|primary process)s?\b/gi) ?? []).map(
            (word) => `${page.path}:${i + 1}: ${word}`,
          ),
        ),
    )
  t.same(found, [])
})

test('every error code is explained', async (t) => {
  const page = pages.find(({ path }) => path === 'docs/operations/troubleshooting.md')
  const codes = Object.entries(errorRegistry).filter(
    ([code, { status }]) =>
      !page?.text
        .split('\n')
        .some((line) => line.includes(`\`${code}\``) && line.includes(`${status}`)),
  )
  t.same(codes, [])
})

test('the generated pages are up to date (npm run docs)', { timeout }, async (t) => {
  const { PATH = '', HOME = '' } = process.env
  const args = [
    '-i',
    `PATH=${PATH}`,
    `HOME=${HOME}`,
    process.execPath,
    'scripts/docs/docs.mjs',
    '--check',
  ]
  const { stderr } = await promisify(execFile)('env', args, { cwd: root })
  t.equal(stderr, '')
})
