// Tells a silent server from a slow statement. A frozen machine and a cut network leave connections
// open that never answer, and no limit on statements would do: a commit may rightly wait long for its
// synchronous standby.
//
//   quiet      a connection in use has received nothing for `quietTicks`: a new connection is tried
//   answering  the server greets, or refuses in its own words: the statement is slow, wait on
//   silent     no greeting within `greetingTicks`: all connections to this server are given up
//
// Time is counted in ticks of our own, so that a process that was itself stopped blames nobody.
import type { DatabaseHost } from './connection-target.ts'
import type { HostClient } from './host-client.ts'

export interface SilenceWatchOptions {
  /** A fresh connection to this server, not yet connected. */
  readonly newClient: (server: DatabaseHost) => HostClient
  readonly onSilent: (server: DatabaseHost) => void
}

const tickMs = 500
const quietTicks = 4
const greetingTicks = 6

interface Look {
  bytesRead: number
  quietFor: number
}

interface Greeting {
  readonly client: HostClient
  waitedFor: number
}

export class SilenceWatch {
  readonly #options: SilenceWatchOptions
  readonly #inUse = new Map<HostClient, Look>()
  readonly #greetings = new Map<DatabaseHost, Greeting>()
  #timer: NodeJS.Timeout | undefined

  constructor(options: SilenceWatchOptions) {
    this.#options = options
  }

  began(client: HostClient): void {
    this.#inUse.set(client, { bytesRead: -1, quietFor: 0 })
    if (this.#timer !== undefined) return
    this.#timer = setInterval(() => this.#tick(), tickMs).unref()
  }

  ended(client: HostClient): void {
    this.#inUse.delete(client)
  }

  isInUse(client: HostClient): boolean {
    return this.#inUse.has(client)
  }

  stop(): void {
    clearInterval(this.#timer)
    this.#timer = undefined
    for (const { client } of this.#greetings.values()) client.abandon()
    this.#greetings.clear()
  }

  #tick(): void {
    for (const [server, greeting] of this.#greetings) {
      greeting.waitedFor += 1
      if (greeting.waitedFor > greetingTicks) this.#isSilent(server)
    }
    for (const [client, look] of this.#inUse) {
      const isQuiet = client.bytesRead === look.bytesRead
      look.quietFor = isQuiet ? look.quietFor + 1 : 0
      look.bytesRead = client.bytesRead
      if (look.quietFor >= quietTicks) this.#tryGreeting(client.server)
    }
  }

  #tryGreeting(server: DatabaseHost): void {
    if (this.#greetings.has(server)) return
    const client = this.#options.newClient(server)
    client.on('error', () => {})
    const greeting = { client, waitedFor: 0 }
    this.#greetings.set(server, greeting)
    client.connect().then(
      () => {
        this.#greetings.delete(server)
        this.#lookAgainLater(server)
        client.end().catch(() => {})
      },
      (error: unknown) => {
        if (this.#greetings.get(server) !== greeting) return
        this.#greetings.delete(server)
        if (error instanceof Error && 'severity' in error) this.#lookAgainLater(server)
        else this.#isSilent(server)
      },
    )
  }

  /** It answered: the next doubt needs as long a quiet as the first. */
  #lookAgainLater(server: DatabaseHost): void {
    for (const [client, look] of this.#inUse) if (client.server === server) look.quietFor = 0
  }

  #isSilent(server: DatabaseHost): void {
    const greeting = this.#greetings.get(server)
    this.#greetings.delete(server)
    greeting?.client.abandon()
    this.#options.onSilent(server)
  }
}
