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
  readonly flags?: readonly string[]
}

export interface NodeProcess {
  readonly pid: number
  /** Resolves when the node serves; rejects if it ends before. */
  readonly ready: Promise<void>
  readonly exited: Promise<string>
  stop(): Promise<void>
}

/** The program beside this folder, in whichever form this file runs: TypeScript or built. */
const main = fileURLToPath(
  new URL(`../main.${import.meta.url.endsWith('.ts') ? 'ts' : 'js'}`, import.meta.url),
)
const stopMsMax = 12_000
const complaintsMax = 3

/** Flags, not environment: what the user has set there reaches the node as it is. */
export function startNode(options: NodeOptions): NodeProcess {
  const flags = [
    ['node-id', options.id],
    ['port', options.port],
    ['gossip-port', options.gossipPort],
    ['database-url', options.databaseUrl],
    ['gossip-secret-file', options.gossipSecretFile],
  ].map(([name, value]) => `--${name}=${value}`)
  const child = spawn(
    process.execPath,
    [...process.execArgv, main, ...flags, ...(options.flags ?? [])],
    {
      // With a channel: should we be killed, the node hears that we are gone and ends.
      stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
    },
  )
  const exited = new Promise<string>((resolve) => {
    child.once('error', (error) => resolve(error.message))
    child.once('exit', (code, signal) => resolve(signal ?? `exit code ${code}`))
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
function untilReady(child: ChildProcess, { id, logFile }: NodeOptions): Promise<void> {
  const file = createWriteStream(logFile, { flags: 'a' })
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
