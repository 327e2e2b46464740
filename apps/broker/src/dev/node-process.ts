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
  /** Where its JSON log goes. */
  readonly logFile: string
  /** It cannot be written any more. Told once. */
  readonly onLogLost: (error: Error) => void
}

export interface NodeProcess {
  readonly pid: number
  /** Resolves when the node serves; rejects if it ends before. */
  readonly ready: Promise<void>
  readonly exited: Promise<NodeExit>
  stop(): Promise<void>
}

export interface NodeExit {
  /** The signal or the exit code. */
  readonly how: string
  /** By somebody else: it did not end by itself. */
  readonly isKilled: boolean
}

/** The program beside this folder, in whichever form this file runs: TypeScript or built. */
const main = fileURLToPath(
  new URL(`../main.${import.meta.url.endsWith('.ts') ? 'ts' : 'js'}`, import.meta.url),
)
const host = '127.0.0.1'
const stopMsMax = 12_000
const complaintsMax = 3

/**
 * Flags, not environment: what the user has set there reaches the node as it is. But where nodes and their database are is
 * not for it to say: a cluster for development is for this machine only, and its nodes do not share an address.
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
    // With a channel: should we be killed, the node hears that we are gone and ends.
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

/** Keeps the log, and reads from it when the node is ready and why it failed. */
function untilReady(child: ChildProcess, { id, logFile, onLogLost }: NodeOptions): Promise<void> {
  const file = createWriteStream(logFile, { flags: 'a' })
  file.once('error', onLogLost)
  // Later ones say the same.
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
    // Closed, not only ended: the last lines have been read then, and the workers have ended as well.
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

/** What a fatal line of the log says, or a line that is no JSON: Node itself, or a refused setting. */
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
