// Runs the blocks of the documentation that are marked `test`, page by page, against a node with a database of
// its own. Each page starts in an empty folder, and its blocks run in their order.
import { execFile, spawn } from 'node:child_process'
import { chmodSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { promisify } from 'node:util'
import { startTestPostgres } from '@rouse/testkit'
import pg from 'pg'
import { t as all, type Test, test } from 'tap'
import { type Block, blocksOf, readPages, root } from './support/pages.ts'

const timeout = 120_000
const address = 'http://127.0.0.1:4600'
const run = promisify(execFile)
/** With the settings of production: `rouse doctor` finds no problem. */
const postgres = await startTestPostgres()
all.teardown(() => postgres.stop())
let pages = 0

for (const page of readPages()) {
  const blocks = blocksOf(page)
  if (!blocks.some(({ note }) => note === 'test')) continue
  test(`the blocks of ${page.path} work`, { timeout }, async (t) => {
    const place = await startPlace(t)
    for (const [i, block] of blocks.entries()) {
      if (block.note !== 'test') continue
      const where = `${page.path}:${block.line}`
      const output = await place.run(block).catch((error: Error & { stderr?: string }) => {
        return t.fail(`${where}: ${error.message} ${error.stderr ?? ''}`) && ''
      })
      const expected = blocks[i + 1]?.language === 'output' ? (blocks[i + 1] as Block).code : ''
      for (const line of expected.split('\n').filter(Boolean)) {
        t.ok(String(output).includes(line), `${where} prints ${line}`, { output })
      }
      t.pass(where)
    }
  })
}

interface Place {
  /** Returns what the block prints. */
  run(block: Block): Promise<string>
}

/** A node, and a folder with the packages that a user installs. */
async function startPlace(t: Test): Promise<Place> {
  const database = await newDatabase()
  const folder = mkdtempSync(join(tmpdir(), 'rouse-docs-'))
  t.teardown(() => rmSync(folder, { recursive: true }))
  const url = await startNode(t, database)
  const packages = join(folder, 'node_modules')
  mkdirSync(join(packages, '@rouse'), { recursive: true })
  symlinkSync(join(root, 'packages/client'), join(packages, '@rouse/client'))
  symlinkSync(join(root, 'test/node_modules/pg'), join(packages, 'pg'))
  const opentelemetry = 'node_modules/@opentelemetry'
  symlinkSync(join(root, 'packages/client', opentelemetry), join(folder, opentelemetry))
  const bin = join(folder, 'bin')
  mkdirSync(bin)
  const program = `#!/bin/sh\nexec ${process.execPath} ${join(root, 'apps/cli/bin/rouse.js')} "$@"\n`
  writeFileSync(join(bin, 'rouse'), program)
  chmodSync(join(bin, 'rouse'), 0o755)
  const env = {
    PATH: `${bin}:${process.env.PATH ?? ''}`,
    HOME: process.env.HOME ?? '',
    ROUSE_URL: url,
    ROUSE_DATABASE_URL: database,
    DATABASE_URL: database,
  }
  const start = (words: readonly string[]) => {
    const settings = Object.entries(env).map(([name, value]) => `${name}=${value}`)
    return run('env', ['-i', ...settings, ...words], { cwd: folder, timeout: 30_000 })
  }
  return {
    async run({ language, code }) {
      const placed = code.replaceAll(address, url)
      if (language === 'sql') return await runSql(database, placed)
      if (language === 'sh')
        return (await start(['bash', '--norc', '-euo', 'pipefail', '-c', placed])).stdout
      const file = join(folder, `block.${language === 'ts' ? 'mts' : 'mjs'}`)
      writeFileSync(file, placed)
      const loader = join(root, 'node_modules/tsx/dist/loader.mjs')
      return (await start([process.execPath, '--import', loader, file])).stdout
    },
  }
}

async function newDatabase(): Promise<string> {
  pages += 1
  const name = `docs_${pages}`
  await runSql(postgres.url, `create database ${name}`)
  const url = new URL(postgres.url)
  url.pathname = `/${name}`
  return url.href
}

async function startNode(t: Test, databaseUrl: string): Promise<string> {
  const { PATH = '', HOME = '' } = process.env
  const flags = ['--port=0', '--gossip-port=0', '--workers=2', '--drain-delay-ms=0']
  const child = spawn(
    'env',
    [
      '-i',
      `PATH=${PATH}`,
      `HOME=${HOME}`,
      process.execPath,
      'apps/cli/bin/rouse.js',
      'serve',
    ].concat(...flags, `--database-url=${databaseUrl}`),
    { cwd: root, stdio: ['ignore', 'pipe', 'inherit'] },
  )
  const exited = new Promise<void>((resolve) => child.once('exit', () => resolve()))
  t.teardown(() => {
    child.kill('SIGTERM')
    return exited
  })
  return new Promise((resolve, reject) => {
    void exited.then(() => reject(new Error('the node ended')))
    createInterface({ input: child.stdout }).on('line', (line) => {
      const entry = JSON.parse(line) as { readonly msg: string; readonly url: string }
      if (entry.msg === 'node is ready') resolve(entry.url)
    })
  })
}

async function runSql(url: string, text: string): Promise<string> {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  try {
    return JSON.stringify(await client.query(text))
  } finally {
    await client.end()
  }
}
