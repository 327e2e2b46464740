// One server of a pair, with the same data folder and port in all its runs.
import { readFileSync } from 'node:fs'
import { createServer } from 'node:net'
import type { EmbeddedPostgres } from '@rouse/database'
import pg from 'pg'
import { eventually } from './eventually.ts'
import { startTestPostgres } from './test-postgres.ts'

export interface PostgresServer {
  /** Also the application_name with which the server connects as a standby. */
  readonly name: string
  readonly dataDir: string
  readonly port: number
  readonly url: string
  readonly running: boolean
  /** The postmaster first, then its child processes; empty if the server does not run. */
  pids(): number[]
  /** Starts as primary or standby, as the data folder defines. Does nothing if the server runs. */
  start(): Promise<void>
  /** An orderly stop. A frozen server is resumed first. Does nothing if the server does not run. */
  stop(): Promise<void>
  /** Sends SIGKILL to all its processes at once, so that none can shut down cleanly. */
  kill(): Promise<void>
  /** Sends SIGSTOP to all its processes: the server keeps its connections and answers nothing. */
  freeze(): void
  thaw(): void
  /** One statement on a new connection. */
  query<Row extends pg.QueryResultRow>(sql: string): Promise<Row[]>
}

export interface PostgresServerOptions {
  readonly name: string
  readonly dataDir: string
  readonly settings: Readonly<Record<string, string>>
  readonly env: Readonly<Record<string, string>>
  readonly log: ((line: string) => void) | undefined
  /** As in TestPostgresOptions. */
  readonly major?: number | undefined
}

const queryTimeoutMs = 10_000

export async function createPostgresServer(
  options: PostgresServerOptions,
): Promise<PostgresServer> {
  const { name, dataDir, settings, env, log, major } = options
  const port = await lastingPort()
  const url = `postgres://postgres@127.0.0.1:${port}/postgres`
  let current: EmbeddedPostgres | undefined

  function pids(): number[] {
    return current === undefined ? [] : [current.pid, ...childrenOf(current.pid)]
  }
  function signalAll(signal: NodeJS.Signals): void {
    // The postmaster first: once stopped, it starts no further process.
    if (current !== undefined) sendTo(current.pid, signal)
    for (const pid of pids().slice(1)) sendTo(pid, signal)
  }
  return {
    name,
    dataDir,
    port,
    url,
    get running() {
      return current !== undefined
    },
    pids,
    async start() {
      if (current !== undefined) return
      const server = await startTestPostgres({
        dataDir,
        port,
        settings,
        env,
        ...(major !== undefined && { major }),
        ...(log !== undefined && { log: (line: string) => log(`${name}: ${line}`) }),
      })
      current = server
      void server.exited.then(() => {
        if (current === server) current = undefined
      })
    },
    async stop() {
      signalAll('SIGCONT')
      await current?.stop()
      current = undefined
    },
    async kill() {
      const killed = current
      if (killed === undefined) return
      const all = pids()
      signalAll('SIGSTOP')
      for (const pid of new Set([...all, ...pids()])) sendTo(pid, 'SIGKILL')
      await killed.exited
      current = undefined
    },
    freeze: () => signalAll('SIGSTOP'),
    thaw: () => signalAll('SIGCONT'),
    async query<Row extends pg.QueryResultRow>(sql: string) {
      return queryOnce<Row>(url, sql)
    },
  }
}

async function queryOnce<Row extends pg.QueryResultRow>(url: string, sql: string): Promise<Row[]> {
  const client = new pg.Client({
    connectionString: url,
    application_name: 'rouse pair',
    connectionTimeoutMillis: queryTimeoutMs,
    query_timeout: queryTimeoutMs,
  })
  client.on('error', () => {})
  try {
    await client.connect()
    return (await client.query<Row>(sql)).rows
  } finally {
    await client.end().catch(() => {})
  }
}

/** The children of a server call setsid, so no process group contains them all. */
function childrenOf(pid: number): number[] {
  try {
    const children = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8')
    return children.split(' ').filter(Boolean).map(Number)
  } catch {
    return []
  }
}

function sendTo(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal)
  } catch {
    // The process has ended meanwhile.
  }
}

/** A port below the kernel's range for outgoing connections. An outgoing connection could take a port in that
 * range while the server is down. */
async function lastingPort(): Promise<number> {
  return eventually(async () => {
    const port = 15_000 + Math.floor(Math.random() * 15_000)
    const probe = createServer()
    await new Promise<void>((resolve, reject) => {
      probe.once('error', reject)
      probe.listen(port, '127.0.0.1', resolve)
    })
    await new Promise((resolve) => probe.close(resolve))
    return port
  })
}
