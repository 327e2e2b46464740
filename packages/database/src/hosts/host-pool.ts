// A pool whose connections go to one server of a target: the one that accepts writes. When another server
// takes over, the pool drops its connections to the old one. If the server has no room for another
// connection, the pool becomes smaller (connection-limit.ts).
import pg from 'pg'
import { isTooManyConnections } from '../postgres-errors.ts'
import { ConnectionLimit } from './connection-limit.ts'
import type { ConnectionTarget, DatabaseHost } from './connection-target.ts'
import { HostClient } from './host-client.ts'
import { HostFinder } from './host-finder.ts'
import { SilenceWatch } from './silence-watch.ts'

export interface HostPoolOptions {
  readonly target: ConnectionTarget
  readonly clientConfig: pg.ClientConfig
  readonly max: number
  readonly connectTimeoutMs: number
  readonly random: () => number
  readonly keepSettings: boolean
  /** Called when the server begins to limit the pool, and when the limit is lifted. */
  readonly onLimit: (limit: PoolLimit) => void
}

export interface PoolLimit {
  /** The current maximum number of connections; `max` is the configured one. */
  readonly limit: number
  readonly max: number
  /** The server's message; absent when the limit is lifted. */
  readonly reason?: string
}

type ConnectCallback = (
  error: Error | undefined,
  client: pg.PoolClient | undefined,
  done: (release?: Error | boolean) => void,
) => void

/** How many times a refused caller waits for a connection of the pool before it gives up. */
const queueTriesMax = 5
const settleMs = 100

export class HostPool extends pg.Pool {
  readonly #finder: HostFinder
  readonly #hasSeveral: boolean
  readonly #watch: SilenceWatch
  readonly #clients = new Set<HostClient>()
  readonly #inUse = new Set<HostClient>()
  readonly #limit: ConnectionLimit
  readonly #onLimit: (limit: PoolLimit) => void
  readonly #newTest: () => HostClient
  #test: NodeJS.Timeout | undefined

  constructor(options: HostPoolOptions) {
    const { target, clientConfig, max, connectTimeoutMs, random, keepSettings, onLimit } = options
    const finder = new HostFinder({
      target,
      clientConfig,
      searchMsMax: connectTimeoutMs,
      random,
      onFound: () => this.#leaveAbandoned(),
    })
    const onUnfit = (server: DatabaseHost) => finder.suspect(server)
    const { readWrite } = target
    class PooledClient extends HostClient {
      constructor(config?: pg.ClientConfig) {
        super(config ?? {}, { server: finder.best, readWrite, onUnfit, keepSettings })
      }
    }
    super({
      ...clientConfig,
      max,
      connectionTimeoutMillis: connectTimeoutMs,
      Client: PooledClient,
    })
    this.#finder = finder
    this.#hasSeveral = finder.hasSeveral
    this.#limit = new ConnectionLimit(max, random)
    this.#onLimit = onLimit
    this.#newTest = () => {
      const config = { ...clientConfig, connectionTimeoutMillis: connectTimeoutMs }
      return new HostClient(config, { server: finder.best, readWrite: false, keepSettings: true })
    }
    this.#watch = new SilenceWatch({
      inUse: this.#inUse,
      newClient: (server) => {
        const config = { ...clientConfig, query_timeout: connectTimeoutMs }
        return new HostClient(config, { server, readWrite: false, keepSettings: true })
      },
      onSilent: (server) => this.#leave(server),
      onLost: (client) => this.#letGo(client),
    })
    this.#listen()
  }

  override connect(): Promise<pg.PoolClient>
  override connect(callback: ConnectCallback): void
  override connect(callback?: ConnectCallback): Promise<pg.PoolClient> | void {
    const first = this.#hasSeveral ? this.#connect() : super.connect()
    const connecting = first.catch((error: unknown) => this.#queue(error))
    if (callback === undefined) return connecting
    connecting.then(
      (client) => callback(undefined, client, (release) => client.release(release)),
      (error: Error) => callback(error, undefined, () => {}),
    )
  }

  override end(): Promise<void>
  override end(callback: () => void): void
  override end(callback?: () => void): Promise<void> | void {
    // Keep watching until the end, or a statement on a silent server would never finish.
    const ended = super.end().finally(() => this.#watch.stop())
    clearTimeout(this.#test)
    if (callback === undefined) return ended
    ended.then(callback, callback)
  }

  /** Tries again if the failure made the server suspect: another server may have taken over. */
  async #connect(): Promise<pg.PoolClient> {
    await this.#finder.find()
    try {
      return await super.connect()
    } catch (error) {
      if (this.#finder.isKnown) throw error
      await this.#finder.find()
      return super.connect()
    }
  }

  /** If the server has no room for another connection, the caller waits for an existing one. If the pool
   * has no connection at all, the call fails. */
  async #queue(error: unknown): Promise<pg.PoolClient> {
    let reason = error
    for (let tries = 0; tries < queueTriesMax && isTooManyConnections(reason); tries += 1) {
      this.#refused(reason as Error)
      // The count includes connections that are being opened: they may still succeed.
      if (this.totalCount === 0) break
      try {
        return await super.connect()
      } catch (failure) {
        reason = failure
      }
    }
    throw reason
  }

  #refused(reason: Error): void {
    const wasLimited = this.#limit.isLimited
    this.#limit.refused(this.#clients.size)
    this.options.max = this.#limit.current
    this.#test ??= this.#testLater()
    if (wasLimited) return
    // The limit is known only when the server has answered all concurrent attempts, almost at once.
    setTimeout(() => {
      const { current: limit, max } = this.#limit
      if (this.#limit.isLimited) this.#onLimit({ limit, max, reason: reason.message })
    }, settleMs).unref()
  }

  #testLater(): NodeJS.Timeout | undefined {
    if (this.ending) return undefined
    return setTimeout(() => void this.#testRoom(), this.#limit.pauseMs).unref()
  }

  async #testRoom(): Promise<void> {
    const client = this.#newTest()
    client.on('error', () => {})
    try {
      await client.connect()
      await client.end()
      this.#limit.testSucceeded()
    } catch (error) {
      if (isTooManyConnections(error)) this.#limit.testFailed()
    }
    this.options.max = this.#limit.current
    const { current: limit, max, isLimited } = this.#limit
    this.#test = isLimited ? this.#testLater() : undefined
    if (!isLimited) this.#onLimit({ limit, max })
  }

  #listen(): void {
    this.on('connect', (client) => {
      this.#clients.add(asHostClient(client))
      this.#limit.connected(this.#clients.size)
      this.options.max = this.#limit.current
    })
    this.on('remove', (client) => this.#clients.delete(asHostClient(client)))
    this.once('acquire', () => this.#watch.start())
    this.on('acquire', (client) => {
      const acquired = asHostClient(client)
      acquired.uses += 1
      this.#inUse.add(acquired)
    })
    this.on('release', (_error, client) => {
      const released = asHostClient(client)
      this.#inUse.delete(released)
      // The pool does not take back a client that is ending.
      const isAbandoned = this.#hasSeveral && this.#finder.isAbandoned(released.server)
      if (released.isRetired || isAbandoned) released.end().catch(() => {})
    })
  }

  /** Connections to the old server end after their statement, or at once if idle. */
  #leaveAbandoned(): void {
    for (const client of this.#clients) {
      if (!this.#finder.isAbandoned(client.server)) continue
      if (!this.#inUse.has(client)) client.abandon()
    }
  }

  /** A network fault that lost one connection may have lost others, so idle ones are replaced. */
  #letGo(lost: HostClient): void {
    lost.abandon('the server runs no statement of this connection')
    for (const client of this.#clients) {
      const isIdle = !this.#inUse.has(client)
      if (isIdle && client.server === lost.server) client.abandon()
    }
  }

  #leave(server: DatabaseHost): void {
    this.#finder.suspect(server)
    for (const client of this.#clients) if (client.server === server) client.abandon()
  }
}

/** Safe, because the pool creates only HostClients. */
function asHostClient(client: pg.PoolClient): HostClient {
  return client as unknown as HostClient
}
