// A PostgreSQL server that is restarted a second after it exits, unless it is held down.
import type { PostgresServer } from '@rouse/testkit'
import { within } from './deadline.ts'

const lookMs = 100
const restartMs = 1_000
const startMsMax = 90_000
const endMsMax = 30_000

export class SupervisedServer {
  readonly server: PostgresServer
  readonly #log: (line: string) => void
  #watch: NodeJS.Timeout | undefined
  #held = false
  #endedAt: number | undefined
  #starting: Promise<void> | undefined

  constructor(server: PostgresServer, log: (line: string) => void) {
    this.server = server
    this.#log = log
  }

  /** Restarts the server after each exit from now on. */
  supervise(): void {
    this.#watch ??= setInterval(() => this.#look(), lookMs)
  }

  /** After its next exit the server stays down until it is released. */
  hold(): void {
    this.#held = true
  }

  async release(): Promise<void> {
    this.#held = false
    await this.start()
  }

  async start(): Promise<void> {
    this.#starting ??= within(
      startMsMax,
      `starting ${this.server.name}`,
      this.server.start(),
    ).finally(() => {
      this.#starting = undefined
    })
    await this.#starting
  }

  async kill(): Promise<void> {
    await this.#starting?.catch(() => {})
    await within(endMsMax, `killing ${this.server.name}`, this.server.kill())
  }

  /** A fast shutdown, as for an upgrade: sessions are ended and data is written. */
  async end(): Promise<void> {
    await this.#starting?.catch(() => {})
    await within(endMsMax, `stopping ${this.server.name}`, this.server.stop())
  }

  async stop(): Promise<void> {
    this.hold()
    clearInterval(this.#watch)
    await this.end().catch(() => this.kill())
  }

  #look(): void {
    if (this.server.running || this.#held || this.#starting !== undefined) {
      this.#endedAt = undefined
      return
    }
    this.#endedAt ??= performance.now()
    if (performance.now() - this.#endedAt < restartMs) return
    this.#endedAt = undefined
    this.start().catch((error: Error) => {
      this.#log(`${this.server.name} did not start: ${error.message.split('\n').at(-1)}`)
    })
  }
}
