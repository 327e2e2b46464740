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
  /** The file for the node's JSON log. */
  readonly logFile: string
  /** Called once, when the log can no longer be written. */
  readonly onLogLost: (error: Error) => void
}

export interface NodeProcess {
  readonly pid: number
  /** Resolves when the node is ready. Rejects if it exits first. */
  readonly ready: Promise<void>
  readonly exited: Promise<NodeExit>
  stop(): Promise<void>
}

export interface NodeExit {
  /** The signal or the exit code. */
  readonly how: string
  /** Whether a signal ended the node. */
  readonly isKilled: boolean
}

/** The broker's entry point: its TypeScript source if this file is TypeScript, otherwise the built file. */
const main = fileURLToPath(
  new URL(`../main.${import.meta.url.endsWith('.ts') ? 'ts' : 'js'}`, import.meta.url),
)
const host = '127.0.0.1'
const stopMsMax = 12_000
const complaintsMax = 3

/**
 * Passes settings as flags, so that the user's environment reaches the node unchanged. The flags always set
 * the addresses of node and database: a development cluster is local, and each node needs its own address.
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

/** Copies the node's output to the log file, and detects in it when the node is ready or why it failed. */
function untilReady(child: ChildProcess, { id, logFile, onLogLost }: NodeOptions): Promise<void> {
  const file = createWriteStream(logFile, { flags: 'a' })
  file.once('error', onLogLost)
  // Only the first error is reported.
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
    // Waits for `close`, not for `exit`: at `close` the last lines have been read and the workers have ended.
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
 * Returns the reason of a fatal log line. A line that is not JSON is returned as it is: Node reports its own
 * errors in plain text, and the broker reports invalid settings in plain text.
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
