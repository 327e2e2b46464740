// One node of the bench, which runs the built program. It can be killed and restarted, and its log is kept.
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { killAll, treeOf } from '../../chaos/cluster/processes.ts'

export const gossipSecret = 'a secret of this benchmark alone'

export interface LogEntry {
  readonly time: string
  readonly msg: string
  readonly peer?: string
  readonly event?: string
}

const main = fileURLToPath(new URL('../../../apps/broker/dist/main.js', import.meta.url))

export class BenchNode {
  readonly id: string
  readonly url: string
  readonly gossip: { readonly host: string; readonly port: number }
  /** The log entries of all runs of this node. */
  readonly log: LogEntry[] = []
  readonly #env: Readonly<Record<string, string | undefined>>
  #child: ChildProcess | undefined

  constructor(databaseUrl: string, number: number) {
    const port = 4600 + 10 * number
    this.id = `node-${number}`
    this.url = `http://127.0.0.1:${port}`
    this.gossip = { host: '127.0.0.1', port: port + 1 }
    this.#env = {
      PATH: process.env.PATH,
      ROUSE_DATABASE_URL: databaseUrl,
      ROUSE_NODE_ID: this.id,
      ROUSE_PORT: String(port),
      ROUSE_GOSSIP_PORT: String(this.gossip.port),
      ROUSE_GOSSIP_SECRET: gossipSecret,
      ROUSE_WORKERS: '1',
      // Aggressive mode ends soon after a fault, so that the results show the group backoff.
      AGGRESSIVE_POLL_DURATION_MS: '1000',
    }
  }

  start(): void {
    const child = spawn(process.execPath, [main], {
      stdio: ['ignore', 'pipe', 'inherit'],
      env: this.#env,
    })
    this.#child = child
    createInterface({ input: child.stdout }).on('line', (line) => {
      this.log.push(JSON.parse(line) as LogEntry)
    })
  }

  /** Kills all processes of the node at once. Resolves to the wall-clock time of the kill. */
  async kill(): Promise<number> {
    const { pid } = this.#child ?? {}
    const killedAt = Date.now()
    if (pid !== undefined) killAll(treeOf(pid))
    await this.#ended()
    return killedAt
  }

  async stop(): Promise<void> {
    this.#child?.kill('SIGTERM')
    await this.#ended()
  }

  async #ended(): Promise<void> {
    const child = this.#child
    if (child?.exitCode === null && child.signalCode === null) await once(child, 'exit')
  }
}
