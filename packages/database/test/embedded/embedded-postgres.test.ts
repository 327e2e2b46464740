import { type ChildProcess, fork, spawn } from 'node:child_process'
import { once } from 'node:events'
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import pg from 'pg'
import { type Test, test } from 'tap'
import { startEmbeddedPostgres } from '../../src/index.ts'

const isRoot = process.getuid?.() === 0
const hasProc = existsSync('/proc/self/cmdline')
const coldStartMsMax = 10_000

function dataFolder(t: Test): string {
  const parent = mkdtempSync(join(tmpdir(), 'rouse-embedded-test-'))
  chmodSync(parent, 0o755)
  t.teardown(() => rmSync(parent, { recursive: true, force: true }))
  return join(parent, 'data')
}

async function ask(url: string, sql: string): Promise<unknown[]> {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  try {
    return (await client.query(sql)).rows
  } finally {
    await client.end()
  }
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch {
    return false
  }
}

async function untilDead(pid: number, withinMs: number): Promise<boolean> {
  const deadline = performance.now() + withinMs
  while (isAlive(pid) && performance.now() < deadline) await delay(10)
  return !isAlive(pid)
}

interface OwnPostgres {
  readonly pid: number
  readonly url: string
  readonly dataDir: string
}

async function startInChild(
  t: Test,
  args: string[] = [],
  identity: { uid?: number; gid?: number } = {},
): Promise<{ child: ChildProcess; postgres: OwnPostgres }> {
  const program = fileURLToPath(new URL('../support/own-postgres.ts', import.meta.url))
  const child = fork(program, args, identity)
  t.teardown(() => child.kill('SIGKILL'))
  const [postgres] = (await once(child, 'message')) as [OwnPostgres]
  return { child, postgres }
}

test('a cold start takes a second or two', async (t) => {
  const startedAt = performance.now()
  const server = await startEmbeddedPostgres()
  const coldMs = Math.round(performance.now() - startedAt)
  t.teardown(() => server.stop())
  t.comment(`cold start: ${coldMs} ms`)
  t.ok(coldMs < coldStartMsMax, `${coldMs} ms`)
  t.match(await ask(server.url, 'show server_version'), [{ server_version: /^18/ }])
  t.same(await ask(server.url, 'show fsync'), [{ fsync: 'on' }])
  t.same(await ask(server.url, 'show listen_addresses'), [{ listen_addresses: '127.0.0.1' }])
})

test('a second stop is safe, and a temporary server leaves nothing behind', async (t) => {
  const server = await startEmbeddedPostgres()
  await Promise.all([server.stop(), server.stop()])
  await server.stop()
  t.equal(isAlive(server.pid), false)
  t.equal(existsSync(server.dataDir), false)
  t.match(await server.exited, { expected: true, code: 0 })
})

test('given settings override the defaults', async (t) => {
  const server = await startEmbeddedPostgres({ settings: { max_connections: '17' } })
  t.teardown(() => server.stop())
  t.same(await ask(server.url, 'show max_connections'), [{ max_connections: '17' }])
})

test('a kept folder keeps its data on any port', async (t) => {
  const dataDir = dataFolder(t)
  const first = await startEmbeddedPostgres({ dataDir })
  await ask(first.url, 'create table kept ()')
  await first.stop()
  const second = await startEmbeddedPostgres({ dataDir })
  t.teardown(() => second.stop())
  t.same(await ask(second.url, 'select from kept'), [])
})

test('a killed server reports it, and starts again over its stale pid file', async (t) => {
  const dataDir = dataFolder(t)
  const first = await startEmbeddedPostgres({ dataDir })
  await ask(first.url, 'create table kept ()')
  first.kill('SIGKILL')
  t.match(await first.exited, { expected: false, signal: 'SIGKILL' })
  t.ok(existsSync(join(first.dataDir, 'postmaster.pid')))
  const second = await startEmbeddedPostgres({ dataDir })
  t.teardown(() => second.stop())
  t.same(await ask(second.url, 'select from kept'), [])
  await first.stop()
  t.equal(isAlive(second.pid), true, 'stopping the dead server does not affect its successor')
})

test('a pid file that names another process does not prevent the start', async (t) => {
  const dataDir = dataFolder(t)
  const first = await startEmbeddedPostgres({ dataDir })
  await first.stop()
  const bystander = spawn(process.execPath, ['-e', 'setInterval(() => {}, 1000)'])
  t.teardown(() => bystander.kill('SIGKILL'))
  writeFileSync(join(first.dataDir, 'postmaster.pid'), `${bystander.pid}\n${first.dataDir}\n0\n1\n`)
  const second = await startEmbeddedPostgres({ dataDir })
  t.teardown(() => second.stop())
  t.equal(isAlive(bystander.pid as number), true)
})

test('a folder in use by a running process is refused', async (t) => {
  const dataDir = dataFolder(t)
  const { postgres } = await startInChild(t, [dataDir])
  await t.rejects(startEmbeddedPostgres({ dataDir }), { code: 'data_dir_in_use' })
  t.equal(isAlive(postgres.pid), true)
})

test('a folder is in use while its server is starting', async (t) => {
  const dataDir = dataFolder(t)
  let pid: number | undefined
  const stopAtFirstLine = () => {
    if (pid !== undefined) return
    pid = Number.parseInt(readFileSync(join(dataDir, 'postmaster.pid'), 'utf8'), 10)
    process.kill(pid, 'SIGSTOP')
  }
  const starting = startEmbeddedPostgres({ dataDir, log: stopAtFirstLine })
  while (pid === undefined) await delay(5)
  await t.rejects(startEmbeddedPostgres({ dataDir }), { code: 'data_dir_in_use' })
  process.kill(pid as unknown as number, 'SIGCONT')
  const first = await starting
  t.teardown(() => first.stop())
  t.equal(first.pid, pid)
  t.same(await ask(first.url, 'select 1 as one'), [{ one: 1 }])
})

test('an orphan in the folder is stopped first', { skip: !hasProc }, async (t) => {
  const dataDir = dataFolder(t)
  const { child, postgres } = await startInChild(t, [dataDir])
  // The watchdog would stop the server together with its parent, so kill the watchdog first.
  const watchdog = watchdogOf(postgres.pid)
  process.kill(watchdog, 'SIGKILL')
  t.equal(await untilDead(watchdog, 2_000), true)
  child.kill('SIGKILL')
  await once(child, 'exit')
  t.equal(isAlive(postgres.pid), true, 'the orphan is running')
  const server = await startEmbeddedPostgres({ dataDir })
  t.teardown(() => server.stop())
  t.equal(isAlive(postgres.pid), false)
  t.same(await ask(server.url, 'select 1 as one'), [{ one: 1 }])
})

function watchdogOf(serverPid: number): number {
  const found = readdirSync('/proc').find((entry) => {
    if (!/^\d+$/.test(entry) || !existsSync(`/proc/${entry}/cmdline`)) return false
    return readFileSync(`/proc/${entry}/cmdline`, 'utf8').includes(`rouse-watchdog\0${serverPid}\0`)
  })
  return Number(found)
}

test('a server ends with its parent, even if that is killed', async (t) => {
  const { child, postgres } = await startInChild(t)
  child.kill('SIGKILL')
  await once(child, 'exit')
  t.equal(await untilDead(postgres.pid, 2_000), true)
  const deadline = performance.now() + 2_000
  while (existsSync(postgres.dataDir) && performance.now() < deadline) await delay(10)
  t.equal(existsSync(postgres.dataDir), false, 'its temporary folder is removed')
})

test('a kept server ends with its parent and keeps its data', async (t) => {
  const dataDir = dataFolder(t)
  const { child, postgres } = await startInChild(t, [dataDir])
  await ask(postgres.url, 'create table kept ()')
  child.kill('SIGKILL')
  await once(child, 'exit')
  t.equal(await untilDead(postgres.pid, 5_000), true)
  const server = await startEmbeddedPostgres({ dataDir })
  t.teardown(() => server.stop())
  t.same(await ask(server.url, 'select from kept'), [])
})

test('the server runs for a user other than root', {
  skip: isRoot ? false : 'not root',
}, async (t) => {
  const { postgres } = await startInChild(t, [], { uid: 65_534, gid: 65_534 })
  t.same(await ask(postgres.url, 'select 1 as one'), [{ one: 1 }])
  t.equal(statSync(postgres.dataDir).uid, 65_534)
})

test('data in a folder that only root can read is kept elsewhere', { skip: !isRoot }, async (t) => {
  const closed = mkdtempSync(join(tmpdir(), 'rouse-embedded-test-'))
  t.teardown(() => rmSync(closed, { recursive: true, force: true }))
  const dataDir = join(closed, 'data')
  const server = await startEmbeddedPostgres({ dataDir })
  t.teardown(() => rmSync(server.dataDir, { recursive: true, force: true }))
  await ask(server.url, 'create table kept ()')
  await server.stop()
  const again = await startEmbeddedPostgres({ dataDir })
  t.teardown(() => again.stop())
  t.equal(again.dataDir, server.dataDir)
  t.same(await ask(again.url, 'select from kept'), [])
})

test('a folder with other files is left alone', async (t) => {
  const dataDir = dataFolder(t)
  mkdirSync(dataDir)
  writeFileSync(join(dataDir, 'letter.txt'), 'dear')
  await t.rejects(startEmbeddedPostgres({ dataDir }), { code: 'data_dir_foreign' })
  t.equal(existsSync(join(dataDir, 'letter.txt')), true)
})

test('a folder of another major version is refused; a version that is too old for Rouse has its own code', async (t) => {
  const dataDir = dataFolder(t)
  mkdirSync(dataDir)
  for (const [version, code] of [
    ['14', 'postgres_too_old'],
    ['9.6', 'postgres_too_old'],
    ['17', 'data_dir_version'],
  ] as const) {
    writeFileSync(join(dataDir, 'PG_VERSION'), `${version}\n`)
    await t.rejects(startEmbeddedPostgres({ dataDir }), { code, message: new RegExp(version) })
  }
})

test("a port in use is reported with the server's log output", async (t) => {
  const first = await startEmbeddedPostgres()
  t.teardown(() => first.stop())
  await t.rejects(startEmbeddedPostgres({ port: first.port }), {
    code: 'start_failed',
    message: /could not bind/,
  })
})
