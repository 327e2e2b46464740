// Runs the blocks of the documentation that are marked `test`, page by page, against a node with a database of
// its own. Each page starts in an empty folder, and its blocks run in their order.
import { execFile, spawn } from 'node:child_process'
import { chmodSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { promisify } from 'node:util'
import { migrate } from '@rouse/database'
import { builtNode, startTestPostgres } from '@rouse/testkit'
import pg from 'pg'
import { t as all, type Test, test } from 'tap'
import { type Block, blocksOf, readPages, root } from './support/pages.ts'

const timeout = 120_000
const address = 'http://127.0.0.1:4600'
const run = promisify(execFile)
/** With the settings of production: `rouse doctor` finds no problem. */
const postgres = await startTestPostgres()
all.teardown(() => postgres.stop())
/** A database with the schema, which that of each page is copied from. */
const template = await newDatabase('docs_template')
await migrate({ url: template })
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
  pages += 1
  const database = await newDatabase(`docs_${pages}`, 'template docs_template')
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

async function newDatabase(name: string, how = ''): Promise<string> {
  await runSql(postgres.url, `create database ${name} ${how}`)
  const url = new URL(postgres.url)
  url.pathname = `/${name}`
  return url.href
}

async function startNode(t: Test, databaseUrl: string): Promise<string> {
  const { PATH = '', HOME = '' } = process.env
  const settings = {
    PATH,
    HOME,
    ROUSE_PORT: '0',
    ROUSE_GOSSIP_PORT: '0',
    ROUSE_WORKERS: '1',
    ROUSE_DRAIN_DELAY_MS: '0',
    ROUSE_DATABASE_URL: databaseUrl,
  }
  const words = Object.entries(settings).map(([name, value]) => `${name}=${value}`)
  const child = spawn('env', ['-i', ...words, process.execPath, builtNode()], {
    cwd: root,
    stdio: ['ignore', 'pipe', 'inherit'],
  })
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
