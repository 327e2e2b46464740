// The other files of cluster-config, each checked by the program that reads it, if it is installed.
import { execFile, spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { loadConfig, newApiKey } from '@rouse/broker'
import {
  freePort,
  programMissing as missing,
  postgresMajors,
  postgresMissing,
  programPath,
  startTestPostgres,
} from '@rouse/testkit'
import pg from 'pg'
import { type Test, test } from 'tap'

const run = promisify(execFile)
const pathOf = (name: string) =>
  fileURLToPath(new URL(`../../cluster-config/${name}`, import.meta.url))
const textOf = (name: string) => readFileSync(pathOf(name), 'utf8')
const timeout = 120_000

test('a node accepts node.json', async (t) => {
  const env = {
    ROUSE_CONFIG: pathOf('node.json'),
    ROUSE_DATABASE_URL: 'postgres://db/rouse',
    ROUSE_GOSSIP_SECRET: 'x'.repeat(32),
  }
  const { config } = loadConfig({ env, args: [], isWorker: false })
  t.match(config, { port: 4600, gossipPeers: ['node1:4601', 'node2:4601', 'node3:4601'] })
})

for (const major of postgresMajors) {
  test(`PostgreSQL ${major} starts with postgresql.conf`, {
    timeout,
    skip: postgresMissing(major),
  }, async (t) => {
    const settings = settingsOf(textOf('postgresql.conf'))
    t.ok(Object.keys(settings).length > 15)
    const server = await startTestPostgres({
      major,
      settings: { ...settings, listen_addresses: '127.0.0.1' },
    })
    t.teardown(() => server.stop())
    const client = new pg.Client({ connectionString: server.url })
    await client.connect()
    const { rows } = await client.query<{ name: string; setting: string }>(
      'select name, setting from pg_settings where source = $1 or name = any ($2)',
      ['command line', Object.keys(settings)],
    )
    await client.end()
    const found = new Set(rows.map(({ name }) => name))
    t.same(
      Object.keys(settings).filter((name) => !found.has(name)),
      [],
      'every setting exists',
    )
    const durable = rows.filter(({ name }) =>
      ['fsync', 'full_page_writes', 'synchronous_commit'].includes(name),
    )
    t.notOk(durable.some(({ setting }) => setting === 'off'))
  })
}

test('every setting of postgresql.conf is under a comment that gives its reason', async (t) => {
  const blocks = textOf('postgresql.conf').trim().split('\n\n')
  t.same(
    blocks.filter((block) => !block.includes('#') && !block.startsWith('listen_addresses')),
    [],
  )
})

test('haproxy accepts haproxy.cfg', { timeout, skip: missing('haproxy') }, async (t) => {
  const known = textOf('haproxy.cfg').replaceAll(/(server node\d) node\d:/g, '$1 127.0.0.1:')
  const file = fileIn(t, 'haproxy.cfg', known)
  const { stdout, stderr } = await run(programPath('haproxy') ?? '', ['-c', '-f', file])
  t.match(stdout + stderr, /valid/)
  t.notMatch(stdout + stderr, /\[(WARNING|ALERT)\]/)
})

test('nginx accepts nginx.conf', { timeout, skip: missing('nginx') }, async (t) => {
  const known = textOf('nginx.conf').replaceAll(/server node\d:/g, 'server 127.0.0.1:')
  const file = fileIn(t, 'nginx.conf', known)
  const { stderr } = await run(programPath('nginx') ?? '', ['-t', '-q', '-c', file])
  t.notMatch(stderr, /\[(warn|emerg)\]/)
})

test('both balancers wait longer than a poll, and know the same nodes', async (t) => {
  const { config } = loadConfig({
    env: { ROUSE_DATABASE_URL: 'postgres://db/rouse' },
    args: [],
    isWorker: false,
  })
  const seconds = (text: string, pattern: RegExp) => Number(pattern.exec(text)?.[1])
  const [haproxy, nginx] = [textOf('haproxy.cfg'), textOf('nginx.conf')]
  for (const limit of [
    seconds(haproxy, /timeout client (\d+)s/),
    seconds(haproxy, /timeout server (\d+)s/),
    seconds(nginx, /proxy_read_timeout (\d+)s/),
  ]) {
    t.ok(limit * 1_000 > config.timeoutMaxMs, `${limit} s`)
  }
  const nodes = (text: string) => [...new Set(text.match(/\bnode\d:\d+/g))]
  t.same(nodes(nginx), nodes(haproxy))
})

test('pgbouncer accepts pgbouncer.ini', { timeout, skip: missing('pgbouncer') }, async (t) => {
  const known = textOf('pgbouncer.ini')
    .replace('listen_addr = *', 'listen_addr = 127.0.0.1')
    .replace('listen_port = 6432', `listen_port = ${await freePort()}`)
    .replace('auth_file = /etc/pgbouncer/userlist.txt', 'auth_file = /dev/null')
    .replace('[pgbouncer]', '[pgbouncer]\nunix_socket_dir =')
  t.match(await pgbouncerLog(t, known), /process up/)
  const wrong = await pgbouncerLog(t, `${known}\npool_mood = transaction\n`)
  t.match(wrong, /unrecognized|unknown|not found/i)
})

/** Starts pgbouncer, and returns its log up to the line that says whether it runs. */
async function pgbouncerLog(t: Test, text: string): Promise<string> {
  const file = fileIn(t, 'pgbouncer.ini', text)
  // It refuses to run as root.
  const isRoot = process.getuid?.() === 0
  const child = spawn(programPath('pgbouncer') ?? '', [file], {
    stdio: ['ignore', 'ignore', 'pipe'],
    ...(isRoot && { uid: 65_534, gid: 65_534 }),
  })
  const exited = new Promise((resolve) => child.once('close', resolve))
  let log = ''
  for await (const part of child.stderr) {
    log += String(part)
    if (/process up/.test(log)) child.kill()
  }
  await exited
  return log
}

test('systemd accepts rouse.service, and finds it hardened', {
  timeout,
  skip: missing('systemd-analyze'),
}, async (t) => {
  const program = fileIn(t, 'rouse', '#!/bin/sh\n')
  chmodSync(program, 0o755)
  const unit = textOf('rouse.service').replace('/usr/local/bin/rouse', program)
  const file = fileIn(t, 'rouse.service', unit)
  const analyze = programPath('systemd-analyze') ?? ''
  const { stderr } = await run(analyze, ['verify', '--man=no', file])
  t.notMatch(stderr, /rouse\.service/)
  const wrong = fileIn(t, 'rouse.service', unit.replace('KillMode=mixed', 'KilMode=mixed'))
  t.match((await run(analyze, ['verify', '--man=no', wrong])).stderr, /KilMode/)
  const { stdout } = await run(analyze, ['security', '--offline=yes', '--threshold=30', file])
  t.match(stdout, /exposure level .*: [0-2]\.\d OK/)
})

test('a node accepts the settings and the verb of rouse.service', async (t) => {
  const unit = textOf('rouse.service')
  const values = [...unit.matchAll(/^Environment=(\w+)=(.*)$/gm)].map(
    ([, name = '', value = '']) => [name, value.replace('%d', '/run/credentials/rouse.service')],
  )
  const credentials = [...unit.matchAll(/^LoadCredential=([\w-]+):/gm)].map(([, name]) => name)
  const readFile = (path: string) => {
    t.ok(credentials.includes(path.split('/').at(-1)), path)
    if (path.endsWith('database-url')) return 'postgres://db/rouse'
    return path.endsWith('admin-key') ? newApiKey(randomBytes).key : 'x'.repeat(32)
  }
  const sources = { args: [], isWorker: false, readFile }
  t.match(loadConfig({ env: Object.fromEntries(values), ...sources }).config, {
    gossipHost: '0.0.0.0',
  })
  t.match(unit, /^ExecStart=\S+ serve$/m)
})

function fileIn(t: Test, name: string, text: string): string {
  const folder = mkdtempSync(join(tmpdir(), 'rouse-config-'))
  chmodSync(folder, 0o755)
  t.teardown(() => rmSync(folder, { recursive: true }))
  const file = join(folder, name)
  writeFileSync(file, text)
  return file
}

/** The settings of a file like postgresql.conf. */
function settingsOf(text: string): Record<string, string> {
  const lines = text.split('\n').map((line) => line.replace(/#.*/, '').trim())
  return Object.fromEntries(
    lines.filter(Boolean).map((line) => {
      const [, name = '', value = ''] = /^(\w+)\s*=\s*'?([^']*)'?$/.exec(line) ?? []
      if (name === '') throw new Error(`not a setting: ${line}`)
      return [name, value]
    }),
  )
}
