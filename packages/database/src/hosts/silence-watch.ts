// Tells a silent server, and a connection that was lost on the way, from a slow statement. A frozen machine, a cut
// network and a firewall that forgot a connection leave it open and never answer, and no limit on statements would
// do: a commit may rightly wait long for its synchronous standby.
//
//   quiet      a connection in use has received nothing for `quietTicks`: a new connection is tried
//   answering  the server greets, or refuses in its own words: it is asked about its quiet connections
//     at work  the statement is slow, wait on
//     lost     the server waits for us to say something, or has no such connection: it is given up, unless
//              its answer comes within `lostTicks`, having been on its way
//   silent     no greeting within `greetingTicks`: all connections to this server are given up
//
// Time is counted in ticks of our own, so that a process that was itself stopped blames nobody.
import type { DatabaseHost } from './connection-target.ts'
import type { HostClient } from './host-client.ts'
import { type BackendLook, lookAtBackends } from './host-statements.ts'

export interface SilenceWatchOptions {
  /** A fresh connection to this server, not yet connected. */
  readonly newClient: (server: DatabaseHost) => HostClient
  readonly onSilent: (server: DatabaseHost) => void
  /** The server knows nothing of what was asked over this connection, and there may be more of the kind. */
  readonly onLost: (client: HostClient) => void
}

const tickMs = 500
const quietTicks = 4
const greetingTicks = 6
const lostTicks = 2

interface Look {
  bytesRead: number
  quietFor: number
  /** For so many ticks the server has had nothing to do for it; undefined: not that we know. */
  lostFor: number | undefined
}

const nothingSeen: BackendLook = { own: 0, atWork: [] }

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
    this.#inUse.set(client, { bytesRead: -1, quietFor: 0, lostFor: undefined })
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
      look.lostFor = isQuiet && look.lostFor !== undefined ? look.lostFor + 1 : undefined
      look.bytesRead = client.bytesRead
      if (look.quietFor >= quietTicks) this.#tryGreeting(client.server)
      if (look.lostFor !== lostTicks) continue
      look.lostFor = undefined
      this.#options.onLost(client)
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
        void this.#findLost(client)
          .then(() => client.end())
          .catch(() => {})
        this.#lookAgainLater(server)
      },
      (error: unknown) => {
        if (this.#greetings.get(server) !== greeting) return
        this.#greetings.delete(server)
        if (error instanceof Error && 'severity' in error) this.#lookAgainLater(server)
        else this.#isSilent(server)
      },
    )
  }

  /** Behind a pooler nothing is found: the processes that it names are none of the server's. */
  async #findLost(client: HostClient): Promise<void> {
    const quiet = [...this.#inUse].filter(([one, { quietFor }]) => {
      return one.server === client.server && one.isAsking && quietFor >= quietTicks
    })
    const pids = quiet.map(([one]) => one.backendPid)
    const { own, atWork } = await lookAtBackends(client, pids).catch(() => nothingSeen)
    if (own !== client.backendPid) return
    for (const [one, look] of quiet) {
      const isAtWork = one.backendPid === 0 || atWork.includes(one.backendPid)
      const isAsBefore = this.#inUse.get(one) === look && one.bytesRead === look.bytesRead
      if (!isAtWork && isAsBefore) look.lostFor = 0
    }
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
