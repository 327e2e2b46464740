// The cluster of `npm start` with three nodes, for all tests of the dashboard.
import { spawn } from 'node:child_process'
import { chmod, mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { eventually } from '@rouse/testkit'
import pg from 'pg'
import type { Test } from 'tap'

const bin = fileURLToPath(new URL('../../../cli/bin/rouse.js', import.meta.url))
const main = fileURLToPath(new URL('../../../broker/dist/main.js', import.meta.url))
const startMsMax = 90_000
const stopMsMax = 40_000

interface Description {
  readonly url: string
  readonly nodes: readonly { readonly id: string; readonly url: string; readonly pid: number }[]
  readonly postgres: { readonly url: string }
}

export interface Cluster {
  /** The URL of the balancer. */
  readonly url: string
  readonly nodes: Description['nodes']
  readonly sql: pg.Pool
  /** Calls the API and returns the parsed body. */
  // biome-ignore lint/suspicious/noExplicitAny: the tests read responses of every shape
  call(method: string, path: string, body?: unknown): Promise<any>
  push(queue: string, count?: number, more?: object): Promise<string[]>
  /** Pops one message and fails it. */
  fail(queue: string, error: { readonly error: string; readonly errorCode: string }): Promise<void>
  describe(): Promise<Description>
  /** Starts another node on the same database. Resolves when it is ready. */
  addNode(t: Test, flags: readonly string[]): Promise<{ readonly stop: () => Promise<unknown> }>
}

export async function startCluster(t: Test): Promise<Cluster> {
  const dataDir = await mkdtemp(join(tmpdir(), 'rouse-dashboard-'))
  await chmod(dataDir, 0o755)
  const port = 30_000 + ((process.pid * 617) % 200) * 10
  const flags = ['dev', '--nodes', '3', '--port', String(port), '--data', dataDir]
  const settings = { ROUSE_WORKERS: '2', ROUSE_RETENTION_INTERVAL_MS: '1000' }
  const { output, stop } = run(t, [bin, ...flags], settings)
  t.teardown(() => rm(dataDir, { recursive: true, force: true }))
  const describe = async () =>
    JSON.parse(await readFile(join(dataDir, 'cluster.json'), 'utf8')) as Description
  const found = await eventually(() => describe().catch(() => undefined), {
    timeoutMs: startMsMax,
  }).catch(() => {
    throw new Error(`the cluster did not start: ${output()}`)
  })
  const sql = new pg.Pool({ connectionString: found.postgres.url, max: 3 })
  sql.on('error', () => {})
  t.teardown(async () => {
    await sql.end()
    await stop()
  })
  const call: Cluster['call'] = async (method, path, body) => {
    const response = await fetch(`${found.url}${path}`, {
      method,
      ...(body === undefined
        ? {}
        : { headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) }),
    })
    const text = await response.text()
    if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${text}`)
    return text === '' ? undefined : JSON.parse(text)
  }
  return {
    url: found.url,
    nodes: found.nodes,
    sql,
    call,
    describe,
    async push(queue, count = 1, more = {}) {
      const items = Array.from({ length: count }, (_, n) => ({ queue, payload: { n }, ...more }))
      const pushed = (await call('POST', '/api/v1/push', { items })) as { id: string }[]
      return pushed.map(({ id }) => id)
    },
    async fail(queue, error) {
      const { messages } = await call('GET', `/api/v1/pop/queue/${encodeURIComponent(queue)}`)
      for (const { receipt } of messages) {
        await call('POST', '/api/v1/ack', { receipt, status: 'failed', ...error })
      }
    },
    async addNode(test, flags) {
      const all = [`--database-url=${found.postgres.url}`, '--port=0', '--workers=1', ...flags]
      const node = run(test, [main, ...all], {})
      await eventually(() => node.output().includes('"msg":"node is ready"'), {
        timeoutMs: startMsMax,
      })
      return node
    },
  }
}

/** Runs a program without the settings of this process, and ends it with the test. */
function run(t: Test, args: readonly string[], settings: Readonly<Record<string, string>>) {
  const { PATH = '', HOME = '' } = process.env
  const env = { PATH, HOME, ...settings }
  const child = spawn(process.execPath, [...args], { env, stdio: ['ignore', 'pipe', 'pipe'] })
  let text = ''
  for (const stream of [child.stdout, child.stderr]) {
    stream.on('data', (chunk: Buffer) => (text += String(chunk)))
  }
  const exited = new Promise((resolve) => child.once('close', resolve))
  const stop = async () => {
    child.kill('SIGTERM')
    const timer = setTimeout(() => child.kill('SIGKILL'), stopMsMax)
    await exited
    clearTimeout(timer)
  }
  t.teardown(stop)
  return { output: () => text, stop }
}
