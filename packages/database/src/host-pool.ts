// A pool whose connections all go to the one server of a target that takes writes, and leave it when
// it no longer does.
import pg from 'pg'
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
}

type ConnectCallback = (
  error: Error | undefined,
  client: pg.PoolClient | undefined,
  done: (release?: Error | boolean) => void,
) => void

export class HostPool extends pg.Pool {
  readonly #finder: HostFinder
  readonly #watch: SilenceWatch
  readonly #clients = new Set<HostClient>()

  constructor(options: HostPoolOptions) {
    const { target, clientConfig, max, connectTimeoutMs, random, keepSettings } = options
    const finder = new HostFinder({
      target,
      clientConfig,
      searchMsMax: connectTimeoutMs,
      random,
      onFound: () => this.#leavePassedOver(),
    })
    const onUnfit = (server: DatabaseHost) => finder.doubt(server)
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
    this.#watch = new SilenceWatch({
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
    if (!this.#finder.hasSeveral) {
      return callback === undefined ? super.connect() : super.connect(callback)
    }
    const connecting = this.#connect()
    if (callback === undefined) return connecting
    connecting.then(
      (client) => callback(undefined, client, (release) => client.release(release)),
      (error: Error) => callback(error, undefined, () => {}),
    )
  }

  override end(): Promise<void>
  override end(callback: () => void): void
  override end(callback?: () => void): Promise<void> | void {
    // Watched to the end, or a statement under way on a silent server would never come to it.
    const ended = super.end().finally(() => this.#watch.stop())
    if (callback === undefined) return ended
    ended.then(callback, callback)
  }

  /** Tried again where the failure has cast doubt on the server: another may have taken over. */
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

  #listen(): void {
    this.on('connect', (client) => this.#clients.add(asHostClient(client)))
    this.on('remove', (client) => this.#clients.delete(asHostClient(client)))
    this.on('acquire', (client) => this.#watch.began(asHostClient(client)))
    this.on('release', (_error, client) => {
      const released = asHostClient(client)
      this.#watch.ended(released)
      // A client that is ending is not taken back.
      if (released.isRetired || this.#finder.isPassedOver(released.server)) {
        released.end().catch(() => {})
      }
    })
  }

  /** What is in use elsewhere ends with its statement; what is idle there ends now. */
  #leavePassedOver(): void {
    for (const client of this.#clients) {
      if (!this.#finder.isPassedOver(client.server)) continue
      if (!this.#watch.isInUse(client)) client.abandon()
    }
  }

  /** Whatever lost one connection on the way may have lost others: idle ones are replaced, to be sure. */
  #letGo(lost: HostClient): void {
    lost.abandon('the server does not know what was asked')
    for (const client of this.#clients) {
      const isIdle = !this.#watch.isInUse(client)
      if (isIdle && client.server === lost.server) client.abandon()
    }
  }

  #leave(server: DatabaseHost): void {
    this.#finder.doubt(server)
    for (const client of this.#clients) if (client.server === server) client.abandon()
  }
}

/** The pool makes no others. */
function asHostClient(client: pg.PoolClient): HostClient {
  return client as unknown as HostClient
}
