import { type ChildProcess, spawn } from 'node:child_process'
import { createInterface } from 'node:readline'
import {
  builtNode,
  eventually,
  type Pgbouncer,
  startPgbouncer,
  type TestDatabase,
  testDatabase,
} from '@rouse/testkit'
import type { Test } from 'tap'

export interface RunningBroker {
  readonly url: string
  readonly child: ChildProcess
  readonly database: TestDatabase
  /** The log entries of the node so far. */
  readonly log: Record<string, unknown>[]
  readonly exited: Promise<{ readonly code: number | null; readonly signal: string | null }>
  readonly stop: () => Promise<{ readonly code: number | null; readonly signal: string | null }>
}

export interface BrokerOptions {
  readonly env?: Readonly<Record<string, string>>
  readonly database?: TestDatabase
  readonly instrumented?: boolean
  /** An API key, if the node needs one for `/stats`. */
  readonly token?: string
  /** The path of the program, if it is of another release. */
  readonly main?: string
}

const main = builtNode()

/** A start takes a second, unless every core is busy with other tests. */
const patience = { timeoutMs: 30_000 }

/**
 * Starts a node on the test's own database. Resolves when it is ready, and stops it at the end of the test.
 */
export async function startBroker(t: Test, options: BrokerOptions = {}): Promise<RunningBroker> {
  const database =
    options.database ?? (await testDatabase(t, { instrumented: options.instrumented ?? false }))
  const child = spawnBroker(
    {
      ...(options.env?.ROUSE_DATABASE_URL === undefined && (await databaseSettings(database.url))),
      ROUSE_PORT: '0',
      ROUSE_WORKERS: '2',
      ROUSE_GOSSIP_PORT: '0',
      ROUSE_DRAIN_DELAY_MS: '0',
      ...options.env,
    },
    [],
    options.main,
  )
  const exited = new Promise<{ code: number | null; signal: string | null }>((resolve) => {
    child.once('exit', (code, signal) => resolve({ code, signal }))
  })
  const stop = () => {
    child.kill('SIGTERM')
    return exited
  }
  t.teardown(stop)
  const log: Record<string, unknown>[] = []
  const url = await new Promise<string>((resolve, reject) => {
    void exited.then(({ code }) => reject(new Error(`ended with ${code}: ${JSON.stringify(log)}`)))
    createInterface({ input: child.stdout as NodeJS.ReadableStream }).on('line', (line) => {
      const entry = JSON.parse(line) as Record<string, unknown>
      log.push(entry)
      if (entry.msg === 'node is ready') resolve(entry.url as string)
    })
  })
  await eventually(async () => (await fetch(`${url}/ready`)).ok, patience)
  const authorization: Record<string, string> =
    options.token === undefined ? {} : { authorization: `Bearer ${options.token}` }
  await eventually(async () => {
    const stats = (await (await fetch(`${url}/stats`, { headers: authorization })).json()) as {
      local_sidecars: number
    }
    return stats.local_sidecars === Number(options.env?.ROUSE_WORKERS ?? 2)
  }, patience)
  return { url, child, database, log, exited, stop }
}

/** One pgbouncer for each PostgreSQL server. */
const poolers = new Map<string, Promise<Pgbouncer>>()

/** With ROUSE_TEST_PGBOUNCER=1 every node queries through pgbouncer and LISTENs on PostgreSQL directly. */
async function databaseSettings(url: string): Promise<Record<string, string>> {
  if (process.env.ROUSE_TEST_PGBOUNCER !== '1') return { ROUSE_DATABASE_URL: url }
  const { host } = new URL(url)
  const pooler = poolers.get(host) ?? startPgbouncer(url)
  poolers.set(host, pooler)
  return { ROUSE_DATABASE_URL: (await pooler).through(url), ROUSE_LISTEN_URL: url }
}

/**
 * Starts a node with only the given environment, PATH and HOME. It runs under `env`, because tap puts its
 * loaders into every Node process that a test starts: with them, a node of three processes takes ten seconds
 * to start instead of one.
 */
export function spawnBroker(
  env: Readonly<Record<string, string>>,
  args: readonly string[] = [],
  program = main,
) {
  const { PATH = '', HOME = '' } = process.env
  const settings = Object.entries({ PATH, HOME, ...env }).map(([name, value]) => `${name}=${value}`)
  return spawn('env', ['-i', ...settings, process.execPath, program, ...args], {
    stdio: ['ignore', 'pipe', 'pipe'],
  })
}
