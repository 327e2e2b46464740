// One run of the `postgres` program: spawn it, wait until it accepts connections, read its log.
import { type ChildProcess, spawn } from 'node:child_process'
import { createInterface } from 'node:readline'
import { EmbeddedPostgresError } from './embedded-error.ts'
import { launcherArgs } from './previous-server.ts'
import { serverEnvironment } from './server-environment.ts'
import { serverUser } from './server-user.ts'

export interface ServerExit {
  readonly code: number | null
  readonly signal: NodeJS.Signals | null
}

export interface ServerProcess {
  readonly child: ChildProcess
  readonly exited: Promise<ServerExit>
  /** Resolves once the server accepts connections; rejects with its log output if it ends before that. */
  readonly ready: Promise<void>
}

export interface ServerProcessOptions {
  readonly program: string
  readonly dataDir: string
  readonly port: number
  readonly settings: Readonly<Record<string, string>>
  readonly env?: Readonly<Record<string, string>> | undefined
  readonly log?: ((line: string) => void) | undefined
}

export function spawnServer(options: ServerProcessOptions): ServerProcess {
  const settings = Object.entries(options.settings).flatMap(([key, value]) => [
    '-c',
    `${key}=${value}`,
  ])
  const child = spawn(
    options.program,
    ['-D', options.dataDir, '-p', String(options.port), ...launcherArgs(), ...settings],
    {
      ...serverUser(),
      cwd: options.dataDir,
      env: serverEnvironment(options.env),
      // A separate session, so that Ctrl-C in the terminal reaches only the launcher, which then stops the
      // server cleanly.
      detached: true,
      stdio: ['ignore', 'ignore', 'pipe'],
    },
  )
  const exited = new Promise<ServerExit>((resolve) => {
    child.once('exit', (code, signal) => resolve({ code, signal }))
  })
  return { child, exited, ready: untilReady(child, options.log) }
}

/** The log line of a standby says that it accepts read-only connections. */
const readyLine = /database system is ready to accept (read-only )?connections/

/** How many log lines are kept for the error of a failed start. */
const lastLinesMax = 20

async function untilReady(child: ChildProcess, log?: (line: string) => void): Promise<void> {
  const lastLines: string[] = []
  await new Promise<void>((resolve, reject) => {
    child.once('error', (cause) => {
      reject(new EmbeddedPostgresError('start_failed', cause.message, { cause }))
    })
    child.once('close', () => {
      reject(new EmbeddedPostgresError('start_failed', lastLines.join('\n') || 'no output'))
    })
    // Read the pipe until the server ends: a full pipe would block the server.
    createInterface({ input: child.stderr as NodeJS.ReadableStream }).on('line', (line) => {
      log?.(line)
      lastLines.push(line)
      if (lastLines.length > lastLinesMax) lastLines.shift()
      if (readyLine.test(line)) resolve()
    })
  })
}
