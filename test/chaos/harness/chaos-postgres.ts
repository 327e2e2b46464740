// The database of the cluster. It keeps its port whatever happens to it, and whatever ends it, it is
// started again after a second, unless a nemesis holds it down.
import { type EmbeddedPostgres, startEmbeddedPostgres } from '@rouse/database'
import pg from 'pg'
import { within } from './deadline.ts'
import { killAll, signal, treeOf } from './processes.ts'

export interface ChaosPostgresOptions {
  readonly dataDir: string
  readonly port: number
  readonly durable: boolean
  readonly log: (line: string) => void
}

const restartMs = 1_000
const startMsMax = 60_000
const queryMsMax = 10_000

export class ChaosPostgres {
  readonly #options: ChaosPostgresOptions
  #server: EmbeddedPostgres | undefined
  #starting: Promise<void> | undefined
  #held = false
  #stopping = false
  #restart: NodeJS.Timeout | undefined

  constructor(options: ChaosPostgresOptions) {
    this.#options = options
  }

  /** Of the server that takes writes, without any relay: for the harness itself. */
  get url(): string {
    return `postgres://postgres@127.0.0.1:${this.#options.port}/postgres`
  }

  get port(): number {
    return this.#options.port
  }

  /** Everything of the server, its backends too; none while it is down. */
  pids(): number[] {
    return this.#server === undefined ? [] : treeOf(this.#server.pid)
  }

  start(): Promise<void> {
    this.#starting ??= this.#start().finally(() => {
      this.#starting = undefined
    })
    return this.#starting
  }

  hold(): void {
    this.#held = true
    clearTimeout(this.#restart)
  }

  async release(): Promise<void> {
    this.#held = false
    await this.start()
  }

  async kill(): Promise<void> {
    const server = this.#server
    killAll(this.pids())
    if (server !== undefined) await within(startMsMax, 'the end of PostgreSQL', server.exited)
  }

  /** An orderly restart, as for a new version: sessions are ended, data are written. */
  async restart(): Promise<void> {
    this.hold()
    await within(startMsMax, 'the orderly end of PostgreSQL', this.#server?.stop() ?? noTime)
    await this.release()
  }

  /** On a connection of its own. Fails rather than wait. */
  async query<Row extends pg.QueryResultRow>(
    text: string,
    values: readonly unknown[] = [],
  ): Promise<Row[]> {
    const client = new pg.Client({
      connectionString: this.url,
      application_name: 'chaos',
      connectionTimeoutMillis: queryMsMax,
      query_timeout: queryMsMax,
    })
    client.on('error', () => {})
    try {
      await client.connect()
      return (await client.query<Row>(text, [...values])).rows
    } finally {
      await within(queryMsMax, 'the end of a session', client.end()).catch(() => {})
    }
  }

  async stop(): Promise<void> {
    this.#stopping = true
    clearTimeout(this.#restart)
    for (const pid of this.pids()) signal(pid, 'SIGCONT')
    await this.#starting?.catch(() => {})
    await this.#server?.stop()
  }

  async #start(): Promise<void> {
    clearTimeout(this.#restart)
    if (this.#server !== undefined || this.#stopping) return
    const { dataDir, port, durable, log } = this.#options
    const server = await within(
      startMsMax,
      'the start of PostgreSQL',
      startEmbeddedPostgres({ dataDir, port, log, settings: settingsOf(durable) }),
    )
    this.#server = server
    void server.exited.then(() => {
      this.#server = undefined
      if (!this.#held && !this.#stopping) this.#startLater()
    })
  }

  #startLater(): void {
    this.#restart = setTimeout(() => {
      this.start().catch((error: Error) => {
        this.#options.log(`PostgreSQL did not start: ${error.message}`)
        if (!this.#held && !this.#stopping) this.#startLater()
      })
    }, restartMs)
  }
}

const noTime = Promise.resolve()

/** A control run without them must lose what was acknowledged. */
function settingsOf(durable: boolean): Record<string, string> {
  return durable ? {} : { fsync: 'off', synchronous_commit: 'off', full_page_writes: 'off' }
}
