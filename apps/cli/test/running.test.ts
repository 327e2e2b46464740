// The verbs that run until they get a signal: serve (one node) and dev (a cluster with its own PostgreSQL).
import { type ChildProcess, spawn } from 'node:child_process'
import { chmod, mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { eventually, testDatabase } from '@rouse/testkit'
import { type Test, test } from 'tap'
import { bin, rouse } from './support/rouse.ts'

interface Running {
  readonly child: ChildProcess
  readonly exited: Promise<number | null>
}

interface Described {
  readonly url: string
  readonly nodes: readonly { readonly pid: number }[]
  readonly postgres: { readonly pid: number }
}

/** A port below the ephemeral range, and far from the ports that a process with a similar pid uses. */
const port = 20_000 + ((process.pid * 617) % 1_000) * 10
const timeout = 240_000
const patience = { timeoutMs: 60_000 }
/** After this time a program that does not stop is killed, so that a failed test leaves nothing running. */
const stopMsMax = 40_000

test('rouse serve serves until SIGTERM', { timeout }, async (t) => {
  const database = await testDatabase(t, { instrumented: false })
  const flags = ['--port=0', '--gossip-port=0', '--workers=2', `--database-url=${database.url}`]
  const { child, exited } = run(t, ['serve', ...flags])
  const url = await urlOfReady(child)
  await eventually(async () => (await fetch(`${url}/ready`)).status === 200, patience)
  await worksAt(t, url)
  child.kill('SIGTERM')
  t.equal(await exited, 0)
  await t.rejects(fetch(`${url}/live`))
})

test('rouse dev runs a cluster until SIGINT', { timeout }, async (t) => {
  const data = await dataFolder(t)
  const { child, exited } = run(t, ['dev', '--nodes', '1', '--port', `${port}`, '--data', data])
  const { url, nodes, postgres } = await eventually(() => described(data), patience)
  t.equal(url, `http://127.0.0.1:${port}`)
  t.equal(nodes.length, 1)
  await worksAt(t, url)
  child.kill('SIGINT')
  t.equal(await exited, 0)
  for (const { pid } of [...nodes, postgres]) t.notOk(isAlive(pid))
  await t.rejects(described(data), { code: 'ENOENT' })
})

test('rouse dev leaves nothing running when a signal interrupts its start', {
  timeout,
}, async (t) => {
  const data = await dataFolder(t)
  const { child } = run(t, ['dev', '--nodes', '1', '--port', `${port}`, '--data', data])
  const file = join(data, 'postgres', 'postmaster.pid')
  const pid = await eventually(
    async () => Number.parseInt(await readFile(file, 'utf8'), 10),
    patience,
  )
  child.kill('SIGTERM')
  await eventually(() => child.exitCode !== null, patience)
  t.equal(child.exitCode, 0)
  t.notOk(isAlive(pid))
  await t.rejects(described(data), { code: 'ENOENT' })
})

test('rouse dev rejects invalid arguments in one line', { timeout }, async (t) => {
  for (const [flags, code, problem] of [
    [['--nodes', '99'], 1, /^rouse: --nodes must be a whole number from 1 to 16\n$/],
    [['--nodes', '1.5'], 1, /Write a whole number/],
    [['--data', ''], 1, /Name a folder/],
    [['--data', '/proc/rouse'], 5, /^rouse: --data \/proc\/rouse cannot be used: .*\n$/],
  ] as const) {
    t.match(await rouse(['dev', ...flags]), { code, err: problem })
  }
})

/** Runs `rouse` in the background, without tap's loaders, and stops it at the end of the test. */
function run(t: Test, args: readonly string[]): Running {
  const { PATH = '', HOME = '' } = process.env
  const child = spawn(
    'env',
    ['-i', `PATH=${PATH}`, `HOME=${HOME}`, process.execPath, bin, ...args],
    { stdio: ['ignore', 'pipe', 'inherit'] },
  )
  const exited = new Promise<number | null>((resolve) => child.once('exit', resolve))
  t.teardown(async () => {
    child.kill('SIGTERM')
    const timer = setTimeout(() => child.kill('SIGKILL'), stopMsMax)
    await exited
    clearTimeout(timer)
  })
  return { child, exited }
}

function urlOfReady(child: ChildProcess): Promise<string> {
  return new Promise((resolve, reject) => {
    child.once('exit', (code) => reject(new Error(`the node ended with ${code}`)))
    createInterface({ input: child.stdout as NodeJS.ReadableStream }).on('line', (line) => {
      const { msg, url } = JSON.parse(line) as { msg: string; url: string }
      if (msg === 'node is ready') resolve(url)
    })
  })
}

async function worksAt(t: Test, url: string): Promise<void> {
  const env = { ROUSE_URL: url }
  t.match(await rouse(['push', 'q', '{"n":1}'], { env }), { code: 0 })
  const { code, out } = await rouse(['pop', 'q', '--wait', '10', '--ack'], { env })
  t.equal(code, 0)
  t.match(JSON.parse(out), { messages: [{ data: { n: 1 } }] })
}

/**
 * A folder that other users may read: PostgreSQL, which does not run as root, would otherwise use another
 * one.
 */
async function dataFolder(t: Test): Promise<string> {
  const path = await mkdtemp(join(tmpdir(), 'rouse-dev-'))
  await chmod(path, 0o755)
  t.teardown(() => rm(path, { recursive: true, force: true }))
  return path
}

async function described(folder: string): Promise<Described> {
  return JSON.parse(await readFile(join(folder, 'cluster.json'), 'utf8'))
}

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0)
  } catch {
    return false
  }
}
