// A pgbouncer in transaction mode in front of a test's PostgreSQL, if pgbouncer is installed.
import { type ChildProcess, spawn } from 'node:child_process'
import { chown, mkdtemp, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { freePort } from '@rouse/database'
import { programMissing, programPath } from './programs.ts'

export interface Pgbouncer {
  /** The URL of the same database through pgbouncer. */
  through(databaseUrl: string): string
  /** Safe to call twice. */
  stop(): Promise<void>
}

export interface PgbouncerOptions {
  /** The number of server connections per database. It is less than the number of clients, so that clients
   * share connections. */
  readonly poolSize?: number
}

const program = programPath('pgbouncer')

/** For the `skip` of a test: false if pgbouncer is installed, else the reason. */
export const pgbouncerMissing: string | false = programMissing('pgbouncer')

const poolSizeDefault = 8
const startAttemptsMax = 5
/** pgbouncer refuses to run as root, so root starts it with this uid. No user has to be created for it. */
const nobodyId = 65_534

/** Resolves when pgbouncer accepts connections. pgbouncer ends with this process at the latest. */
export async function startPgbouncer(
  serverUrl: string,
  { poolSize = poolSizeDefault }: PgbouncerOptions = {},
): Promise<Pgbouncer> {
  if (program === undefined) throw new Error(String(pgbouncerMissing))
  for (let attempt = 1; ; attempt += 1) {
    const port = await freePort()
    const folder = await mkdtemp('/tmp/rouse-pgbouncer-')
    const file = join(folder, 'pgbouncer.ini')
    await writeFile(file, configuration({ server: new URL(serverUrl), port, poolSize }))
    if (isRoot()) await Promise.all([folder, file].map((path) => chown(path, nobodyId, nobodyId)))
    const child = spawnWithUs(program, folder)
    const stop = stopper(child)
    try {
      await untilUp(child)
    } catch (error) {
      await stop()
      // Another process may have taken the free port meanwhile.
      if (attempt === startAttemptsMax) throw error
      continue
    }
    letGo(child)
    return { through: (databaseUrl) => moved(databaseUrl, port), stop }
  }
}

function configuration(options: {
  readonly server: URL
  readonly port: number
  readonly poolSize: number
}): string {
  const { server, port, poolSize } = options
  const user = decodeURIComponent(server.username) || 'postgres'
  const password = server.password && ` password='${decodeURIComponent(server.password)}'`
  return `[databases]
* = host=${server.hostname} port=${server.port || 5432} user=${user}${password}

[pgbouncer]
listen_addr = 127.0.0.1
listen_port = ${port}
unix_socket_dir =
auth_type = any
pool_mode = transaction
default_pool_size = ${poolSize}
max_client_conn = 2000
server_login_retry = 1
ignore_startup_parameters = extra_float_digits
`
}

/** The shell stops pgbouncer and cleans up when our end of the pipe closes, however this process ends. */
function spawnWithUs(path: string, folder: string): ChildProcess {
  const script = '"$0" "$1/pgbouncer.ini" & cat >/dev/null; kill -INT $!; wait; rm -rf "$1"'
  return spawn('sh', ['-c', script, path, folder], {
    cwd: '/',
    stdio: ['pipe', 'ignore', 'pipe'],
    ...(isRoot() && { uid: nobodyId, gid: nobodyId }),
  })
}

async function untilUp(child: ChildProcess): Promise<void> {
  const said: string[] = []
  await new Promise<void>((resolve, reject) => {
    const lines = createInterface({ input: child.stderr as NodeJS.ReadableStream })
    lines.on('line', (line) => {
      said.push(line)
      if (line.includes('process up:')) resolve()
      // The shell keeps running even if pgbouncer has ended.
      if (/FATAL|ERROR/.test(line)) reject(new Error(`pgbouncer did not start: ${said.join('\n')}`))
    })
    child.once('error', reject)
    child.once('exit', () => reject(new Error(`pgbouncer ended: ${said.join('\n')}`)))
  })
}

/** Allows the process of a test file to end while pgbouncer runs. */
function letGo(child: ChildProcess): void {
  for (const part of [child, child.stdin, child.stderr]) (part as { unref?(): void }).unref?.()
}

function stopper(child: ChildProcess): () => Promise<void> {
  const exited = new Promise<void>((resolve) => child.once('exit', () => resolve()))
  return () => {
    child.ref()
    child.stdin?.end()
    return exited
  }
}

function moved(databaseUrl: string, port: number): string {
  const url = new URL(databaseUrl)
  url.hostname = '127.0.0.1'
  url.port = String(port)
  return url.href
}

function isRoot(): boolean {
  return process.getuid?.() === 0
}
