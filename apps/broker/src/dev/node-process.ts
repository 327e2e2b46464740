import { type ChildProcess, spawn } from 'node:child_process'
import { createWriteStream } from 'node:fs'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { DevError } from './dev-error.ts'

export interface NodeOptions {
  readonly id: string
  readonly port: number
  readonly gossipPort: number
  readonly databaseUrl: string
  readonly gossipSecretFile: string
  /** The file of its JSON log. */
  readonly logFile: string
  /** Called once, when the log can no longer be written. */
  readonly onLogLost: (error: Error) => void
}

export interface NodeProcess {
  readonly pid: number
  /** Resolves when the node serves. Rejects if it exits first. */
  readonly ready: Promise<void>
  readonly exited: Promise<NodeExit>
  stop(): Promise<void>
}

export interface NodeExit {
  /** The signal or the exit code. */
  readonly how: string
  /** A signal ended it; it did not exit by itself. */
  readonly isKilled: boolean
}

/** The broker's entry point, in the form of this file: TypeScript or built. */
const main = fileURLToPath(
  new URL(`../main.${import.meta.url.endsWith('.ts') ? 'ts' : 'js'}`, import.meta.url),
)
const host = '127.0.0.1'
const stopMsMax = 12_000
const complaintsMax = 3

/**
 * Passes flags, so that the user's environment reaches the node unchanged. Addresses of nodes and database
 * are always set here: a development cluster is local, and its nodes must not share an address.
 */
export function startNode(options: NodeOptions): NodeProcess {
  const flags = [
    ['node-id', options.id],
    ['host', host],
    ['port', options.port],
    ['advertise-url', `http://${host}:${options.port}`],
    ['gossip-host', host],
    ['gossip-port', options.gossipPort],
    ['gossip-advertise', `${host}:${options.gossipPort}`],
    ['gossip-peers', ''],
    ['database-url', options.databaseUrl],
    ['listen-url', options.databaseUrl],
    ['gossip-secret-file', options.gossipSecretFile],
  ].map(([name, value]) => `--${name}=${value}`)
  const child = spawn(process.execPath, [...process.execArgv, main, ...flags], {
    // The IPC channel ends the node if this process is killed.
    stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
  })
  const exited = new Promise<NodeExit>((resolve) => {
    child.once('error', (error) => resolve({ how: error.message, isKilled: false }))
    child.once('exit', (code, signal) =>
      resolve({ how: signal ?? `exit code ${code}`, isKilled: signal !== null }),
    )
  })
  return { pid: child.pid ?? 0, ready: untilReady(child, options), exited, stop }

  async function stop(): Promise<void> {
    child.kill('SIGTERM')
    const timer = setTimeout(() => child.kill('SIGKILL'), stopMsMax)
    await exited
    clearTimeout(timer)
  }
}

/** Writes the log, and detects in it when the node is ready or why it failed. */
function untilReady(child: ChildProcess, { id, logFile, onLogLost }: NodeOptions): Promise<void> {
  const file = createWriteStream(logFile, { flags: 'a' })
  file.once('error', onLogLost)
  // Later errors add nothing.
  file.on('error', () => {})
  const complaints = new Set<string>()
  return new Promise((resolve, reject) => {
    const listen = (stream: NodeJS.ReadableStream | null): void => {
      if (stream === null) return
      createInterface({ input: stream }).on('line', (line) => {
        file.write(`${line}\n`)
        if (line.includes('"msg":"node is ready"')) resolve()
        const complaint = complaintOf(line)
        if (complaint !== undefined && complaints.size < complaintsMax) complaints.add(complaint)
      })
    }
    listen(child.stdout)
    listen(child.stderr)
    // `close`, not `exit`: by then the last lines have been read and the workers have ended.
    child.once('close', (code, signal) => {
      file.end()
      const why = [...complaints].join('; ') || `see ${logFile}`
      reject(
        new DevError(
          'node_failed',
          `${id} did not start (${signal ?? `exit code ${code}`}): ${why}`,
        ),
      )
    })
  })
}

/**
 * The reason in a fatal log line, or a line that is not JSON: an error of Node itself, or an invalid setting.
 */
function complaintOf(line: string): string | undefined {
  try {
    const { level, msg, err } = JSON.parse(line) as {
      level: string
      msg: string
      err?: { message?: string }
    }
    return level === 'fatal' ? [msg, err?.message].filter(Boolean).join(': ') : undefined
  } catch {
    return line.trim() === '' ? undefined : line
  }
}
