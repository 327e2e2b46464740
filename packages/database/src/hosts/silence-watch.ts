// Distinguishes a silent server and a lost connection from a slow statement. A frozen machine, a cut network
// or a firewall that dropped its state leaves a connection open without an answer. A statement timeout is not
// an option: a commit may legitimately wait long for its synchronous standby.
//
//   quiet      a connection in use has received nothing for `quietTicks`: try a new connection
//   answering  the server answers. If it refuses the new connection with an error: keep waiting. If it
//              accepts the new connection: query the state of the backends of the quiet connections
//     at work  the statement is slow: keep waiting
//     lost     the server waits for our next message, or has no such connection: drop the connection, unless
//              the result of its statement arrives within `lostTicks`
//   silent     no answer within `greetingTicks`: drop all connections to this server
//
// Time is counted in ticks of this process, so a pause of the process itself is not taken for a silent
// server.
import type { DatabaseHost } from './connection-target.ts'
import type { HostClient } from './host-client.ts'
import { type BackendStates, readBackendStates } from './host-statements.ts'

export interface SilenceWatchOptions {
  /** The connections in use. Read at each tick, so that the watch costs a statement nothing. */
  readonly inUse: ReadonlySet<HostClient>
  /** A new client for this server, not yet connected. */
  readonly newClient: (server: DatabaseHost) => HostClient
  readonly onSilent: (server: DatabaseHost) => void
  /** Called when a statement of this connection is lost. Other connections may be lost, too. */
  readonly onLost: (client: HostClient) => void
}

const tickMs = 500
const quietTicks = 4
const greetingTicks = 6
const lostTicks = 2

interface Watched {
  /** The use of the connection that this state belongs to. */
  readonly use: number
  bytesRead: number
  quietFor: number
  /** The ticks since the server reported that it runs no statement of this connection; else undefined. */
  lostFor: number | undefined
}

const nothingSeen: BackendStates = { own: 0, atWork: [] }

interface Greeting {
  readonly client: HostClient
  waitedFor: number
}

export class SilenceWatch {
  readonly #options: SilenceWatchOptions
  readonly #watched = new WeakMap<HostClient, Watched>()
  readonly #greetings = new Map<DatabaseHost, Greeting>()
  #timer: NodeJS.Timeout | undefined

  constructor(options: SilenceWatchOptions) {
    this.#options = options
  }

  start(): void {
    this.#timer = setInterval(() => this.#tick(), tickMs).unref()
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
    for (const client of this.#options.inUse) {
      const watched = this.#stateOf(client)
      const isQuiet = client.bytesRead === watched.bytesRead
      watched.quietFor = isQuiet ? watched.quietFor + 1 : 0
      watched.lostFor = isQuiet && watched.lostFor !== undefined ? watched.lostFor + 1 : undefined
      watched.bytesRead = client.bytesRead
      if (watched.quietFor >= quietTicks) this.#tryGreeting(client.server)
      if (watched.lostFor !== lostTicks) continue
      watched.lostFor = undefined
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
        this.#restartQuiet(server)
      },
      (error: unknown) => {
        if (this.#greetings.get(server) !== greeting) return
        this.#greetings.delete(server)
        if (error instanceof Error && 'severity' in error) this.#restartQuiet(server)
        else this.#isSilent(server)
      },
    )
  }

  /** Finds nothing behind a pooler: the pids that a pooler reports are not those of backends. */
  async #findLost(client: HostClient): Promise<void> {
    const inUse = Array.from(this.#options.inUse, (one) => [one, this.#stateOf(one)] as const)
    const quiet = inUse.filter(([one, { quietFor }]) => {
      return one.server === client.server && one.isAsking && quietFor >= quietTicks
    })
    const pids = quiet.map(([one]) => one.backendPid)
    const { own, atWork } = await readBackendStates(client, pids).catch(() => nothingSeen)
    if (own !== client.backendPid) return
    for (const [one, watched] of quiet) {
      const isAtWork = one.backendPid === 0 || atWork.includes(one.backendPid)
      const isSameUse = this.#options.inUse.has(one) && one.uses === watched.use
      const isAsBefore = isSameUse && one.bytesRead === watched.bytesRead
      if (!isAtWork && isAsBefore) watched.lostFor = 0
    }
  }

  /** The server answered: the next check starts only after another full quiet period. */
  #restartQuiet(server: DatabaseHost): void {
    for (const client of this.#options.inUse) {
      if (client.server === server) this.#stateOf(client).quietFor = 0
    }
  }

  #stateOf(client: HostClient): Watched {
    const known = this.#watched.get(client)
    if (known?.use === client.uses) return known
    const watched = { use: client.uses, bytesRead: -1, quietFor: 0, lostFor: undefined }
    this.#watched.set(client, watched)
    return watched
  }

  #isSilent(server: DatabaseHost): void {
    const greeting = this.#greetings.get(server)
    this.#greetings.delete(server)
    greeting?.client.abandon()
    this.#options.onSilent(server)
  }
}
