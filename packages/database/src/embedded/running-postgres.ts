import { execFile } from 'node:child_process'
import { setTimeout as delay } from 'node:timers/promises'
import { promisify } from 'node:util'
import { type DataFolder, removeIfTemporary } from './data-folder.ts'
import type { ServerExit, ServerProcess } from './server-process.ts'
import { unrefStream, type Watchdog } from './watchdog.ts'

export interface EmbeddedExit extends ServerExit {
  /** False if the server ended although `stop` had not been called. */
  readonly expected: boolean
}

export interface EmbeddedPostgres {
  readonly url: string
  readonly port: number
  readonly pid: number
  readonly dataDir: string
  /** Resolves when the server process has ended, for any reason. */
  readonly exited: Promise<EmbeddedExit>
  /** Resolves when nothing is left running; safe to call twice. */
  stop(): Promise<void>
  /** Sends a signal to the server, to simulate a fault. */
  kill(signal: NodeJS.Signals): void
  /** Allows the launcher to exit while the server runs; the watchdog then stops the server. */
  unref(): void
}

interface RunningParts {
  readonly pgCtl: string
  readonly folder: DataFolder
  readonly server: ServerProcess
  readonly watchdog: Watchdog
  readonly port: number
}

/** The signals that stop the server, and how long each may take before the next, harsher one is sent. */
const stopSignals = [
  { signal: 'SIGINT', waitMs: 15_000 },
  { signal: 'SIGQUIT', waitMs: 5_000 },
  { signal: 'SIGKILL', waitMs: 5_000 },
] as const

export class RunningPostgres implements EmbeddedPostgres {
  readonly url: string
  readonly port: number
  readonly pid: number
  readonly dataDir: string
  readonly exited: Promise<EmbeddedExit>
  readonly #parts: RunningParts
  #stopping: Promise<void> | undefined

  constructor(parts: RunningParts) {
    this.#parts = parts
    this.port = parts.port
    this.pid = parts.server.child.pid as number
    this.dataDir = parts.folder.path
    this.url = `postgres://postgres@127.0.0.1:${parts.port}/postgres`
    this.exited = parts.server.exited.then((exit) => ({
      ...exit,
      expected: this.#stopping !== undefined,
    }))
    // After a crash the watchdog is needed only to remove a temporary folder.
    if (!parts.folder.temporary) void parts.server.exited.then(() => parts.watchdog.dismiss())
  }

  stop(): Promise<void> {
    this.#stopping ??= this.#stop()
    return this.#stopping
  }

  kill(signal: NodeJS.Signals): void {
    this.#parts.server.child.kill(signal)
  }

  unref(): void {
    this.#parts.server.child.unref()
    unrefStream(this.#parts.server.child.stderr)
    this.#parts.watchdog.unref()
  }

  async #stop(): Promise<void> {
    const { folder, watchdog } = this.#parts
    await this.#endServer()
    watchdog.dismiss()
    await removeIfTemporary(folder)
  }

  async #endServer(): Promise<void> {
    const { pgCtl, folder, server } = this.#parts
    // On Windows, Node.js can only terminate a process, which PostgreSQL treats as a crash.
    if (process.platform === 'win32') {
      await promisify(execFile)(pgCtl, ['stop', '-D', folder.path, '-m', 'fast'])
      return
    }
    for (const { signal, waitMs } of stopSignals) {
      server.child.kill(signal)
      if (await endsWithin(server.exited, waitMs)) return
    }
  }
}

async function endsWithin(exited: Promise<unknown>, waitMs: number): Promise<boolean> {
  const timer = new AbortController()
  const ended = await Promise.race([
    exited.then(() => true),
    delay(waitMs, false, { signal: timer.signal }).catch(() => false),
  ])
  timer.abort()
  return ended
}
