// One node: `rouse serve` with two workers, in a clean environment. After any exit it is restarted within a
// second, unless a nemesis holds it down.
import { type ChildProcess, spawn } from 'node:child_process'
import { closeSync, openSync } from 'node:fs'
import { get } from 'node:http'
import { fileURLToPath } from 'node:url'
import { eventually } from '@rouse/testkit'
import { within } from './deadline.ts'
import { childrenOf, killAll, signal, treeOf } from './processes.ts'

export interface ChaosNodeOptions {
  readonly id: string
  readonly port: number
  readonly logFile: string
  readonly env: Readonly<Record<string, string>>
  readonly log: (line: string) => void
}

export interface PeerStats {
  readonly id: string
  readonly state: string
  readonly hearsUs?: boolean
}

export interface ChaosNodeStats {
  readonly peers: readonly PeerStats[]
  readonly local_sidecars: number
  readonly mode: { readonly mode: string }
  readonly waiting: { readonly total: number }
}

const program = fileURLToPath(new URL('../../../apps/cli/bin/rouse.js', import.meta.url))
export const workersPerNode = 2
const restartMs = 1_000
/** A node limits its own stop to twelve seconds, so this is long enough. */
const endMsMax = 30_000
const answerMsMax = 2_000

export class ChaosNode {
  readonly id: string
  readonly url: string
  readonly port: number
  readonly #options: ChaosNodeOptions
  #extraEnv: Readonly<Record<string, string>> = {}
  #child: ChildProcess | undefined
  #exited: Promise<void> = Promise.resolve()
  #held = false
  #stopping = false
  #restart: NodeJS.Timeout | undefined

  constructor(options: ChaosNodeOptions) {
    this.#options = options
    this.id = options.id
    this.port = options.port
    this.url = `http://127.0.0.1:${options.port}`
  }

  /** The primary process; undefined while the node is down. */
  get pid(): number | undefined {
    return this.#child?.pid
  }

  workerPids(): number[] {
    return this.pid === undefined ? [] : childrenOf(this.pid)
  }

  pids(): number[] {
    return this.pid === undefined ? [] : treeOf(this.pid)
  }

  start(): void {
    clearTimeout(this.#restart)
    if (this.#child !== undefined || this.#stopping) return
    const log = openSync(this.#options.logFile, 'a')
    // Starts Node through `env -i`, because tap would otherwise add its loaders to the process.
    const child = spawn('env', ['-i', ...this.#environment(), process.execPath, program, 'serve'], {
      // If the harness is killed, the IPC channel closes, and the node exits.
      stdio: ['ignore', log, log, 'ipc'],
    })
    closeSync(log)
    this.#child = child
    this.#exited = new Promise((resolve) => {
      const ended = (how: string): void => {
        if (this.#child === child) this.#ended(how)
        resolve()
      }
      child.once('error', (error) => ended(error.message))
      child.once('exit', (code, how) => ended(how ?? `exit code ${code}`))
    })
  }

  /** After its next exit the node stays down until it is released. */
  hold(): void {
    this.#held = true
    clearTimeout(this.#restart)
  }

  release(): void {
    this.#held = false
    this.start()
  }

  /** Kills all processes of the node at the same moment. */
  async kill(): Promise<void> {
    killAll(this.pids())
    await within(endMsMax, `killing ${this.id}`, this.#exited)
  }

  /** Stops the node with SIGTERM, like a deployment. */
  async terminate(): Promise<void> {
    if (this.pid !== undefined) signal(this.pid, 'SIGTERM')
    await within(endMsMax, `stopping ${this.id}`, this.#exited)
  }

  /** Overrides the node's settings from its next start on. */
  setEnvironment(env: Readonly<Record<string, string>>): void {
    this.#extraEnv = env
  }

  /** Whether the node reports on /ready that it serves requests, and in its stats that both workers run. */
  async isReady(): Promise<boolean> {
    const [ready, stats] = await Promise.all([ask(`${this.url}/ready`), this.stats()])
    return ready.status === 200 && stats.local_sidecars === workersPerNode
  }

  async stats(): Promise<ChaosNodeStats> {
    return JSON.parse((await ask(`${this.url}/stats`)).text) as ChaosNodeStats
  }

  async untilReady(timeoutMs: number): Promise<void> {
    await eventually(() => this.isReady(), { timeoutMs, intervalMs: 100 })
  }

  async stop(): Promise<void> {
    this.#stopping = true
    clearTimeout(this.#restart)
    for (const pid of this.pids()) signal(pid, 'SIGCONT')
    await this.terminate().catch(() => this.kill())
  }

  #ended(how: string): void {
    this.#child = undefined
    if (this.#stopping) return
    this.#options.log(`${this.id} ended (${how})`)
    if (!this.#held) this.#restart = setTimeout(() => this.start(), restartMs)
  }

  #environment(): string[] {
    const { PATH = '', HOME = '' } = process.env
    // `env -i` clears the environment, including the variables that describe the IPC channel, so these are
    // passed explicitly.
    const channel = { NODE_CHANNEL_FD: '3', NODE_CHANNEL_SERIALIZATION_MODE: 'json' }
    const all = { PATH, HOME, ...channel, ...this.#options.env, ...this.#extraEnv }
    return Object.entries(all).map(([name, value]) => `${name}=${value}`)
  }
}

function ask(url: string): Promise<{ status: number | undefined; text: string }> {
  return new Promise((resolve, reject) => {
    const request = get(url, { agent: false, timeout: answerMsMax }, (response) => {
      let text = ''
      response.setEncoding('utf8')
      response.on('data', (part: string) => {
        text += part
      })
      response.once('end', () => resolve({ status: response.statusCode, text }))
      response.once('error', reject)
    })
    request.once('timeout', () => request.destroy(new Error(`${url} does not respond`)))
    request.once('error', reject)
  })
}
