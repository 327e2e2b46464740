// The connection that LISTENs, so that messages from SQL producers are noticed at once.
//
//   down → connecting   after a pause that grows with every failure, with jitter
//   connecting → up     LISTEN succeeded; the node polls for commits that it missed
//   up → down           the connection broke, or the listener did not receive its own heartbeat
import { type Connector, createConnector, isPooled } from '@rouse/database'
import { beat, listen, scheduledChannel } from '@rouse/storage'
import type pg from 'pg'
import type { Logger } from '../log.ts'
import type { Service } from './service.ts'

const connectMsMax = 5_000
const pauseMsMin = 100
const pauseMsMax = 5_000
const beatEveryMs = 10_000
const beatMsMax = 5_000

export interface ListenerOptions {
  readonly url: string
  readonly applicationName: string
  readonly log: Logger
  readonly random: () => number
  /** Something is due at this time by the database's clock, in ms since 1970. 0 means now. */
  readonly onDue: (dueAtMs: number) => void
  readonly onUp: () => void
  readonly onDown: () => void
}

export class Listener implements Service {
  readonly #options: ListenerOptions
  readonly #connector: Connector
  /** The current connection. Events of older ones are ignored. */
  #client: pg.Client | undefined
  #running = false
  #isUp = false
  #isLossLogged = false
  #failures = 0
  #echoes = 0
  #timer: NodeJS.Timeout | undefined
  /** Notifications of SQL producers so far. */
  notifications = 0

  constructor(options: ListenerOptions) {
    this.#options = options
    this.#connector = createConnector({
      url: options.url,
      applicationName: options.applicationName,
      connectTimeoutMs: connectMsMax,
      queryTimeoutMs: beatMsMax,
      random: options.random,
    })
  }

  /** Resolves after the first attempt, even if it failed: a node also serves without LISTEN. */
  async start(): Promise<void> {
    if (this.#running) return
    this.#running = true
    await this.#connect()
  }

  async stop(): Promise<void> {
    this.#running = false
    clearTimeout(this.#timer)
    const last = this.#client
    this.#client = undefined
    this.#isUp = false
    await last?.end().catch(() => {})
  }

  state(): 'up' | 'down' {
    return this.#isUp ? 'up' : 'down'
  }

  async #connect(): Promise<void> {
    const { random, log, onUp } = this.#options
    let client: pg.Client
    try {
      client = await this.#connector.next()
    } catch (error) {
      this.#tryLater((error as Error).message)
      return
    }
    if (!this.#running) return
    const echo = `rouse_echo_${Math.floor(random() * 0xffff_ffff).toString(16)}`
    this.#client = client
    client.on('error', (error) => this.#lost(client, error.message))
    client.on('end', () => this.#lost(client, 'the connection ended'))
    client.on('notification', ({ channel, payload }) => this.#heard(channel, payload ?? '', echo))
    try {
      await client.connect()
      await refusePooler(client)
      await listen(client, echo)
      await this.#hearOurselves(client, echo)
    } catch (error) {
      this.#lost(client, (error as Error).message)
      return
    }
    if (this.#client !== client) return
    this.#isUp = true
    this.#failures = 0
    if (this.#isLossLogged) log.info('LISTEN restored')
    this.#isLossLogged = false
    this.#beatLater(client, echo)
    onUp()
  }

  #heard(channel: string, payload: string, echo: string): void {
    if (channel === echo) this.#echoes += 1
    else if (channel === scheduledChannel) {
      this.notifications += 1
      this.#options.onDue(/^\d{1,15}$/.test(payload) ? Number(payload) : 0)
    }
  }

  #beatLater(client: pg.Client, echo: string): void {
    this.#timer = setTimeout(() => {
      this.#hearOurselves(client, echo).then(
        () => {
          if (this.#client === client) this.#beatLater(client, echo)
        },
        (error: Error) => this.#lost(client, error.message),
      )
    }, beatEveryMs)
  }

  /** PostgreSQL delivers our own notification before it answers the NOTIFY. */
  async #hearOurselves(client: pg.Client, echo: string): Promise<void> {
    const before = this.#echoes
    await beat(client, echo)
    if (this.#echoes === before) {
      throw new Error('the listener did not receive its own notification')
    }
  }

  #lost(client: pg.Client, reason: string): void {
    if (this.#client !== client) return
    this.#client = undefined
    this.#isUp = false
    clearTimeout(this.#timer)
    client.end().catch(() => {})
    this.#tryLater(reason)
  }

  #tryLater(reason: string): void {
    const { log, random, onDown } = this.#options
    if (!this.#running) return
    if (!this.#isLossLogged)
      log.warn({ reason }, 'LISTEN lost; polling for messages from SQL producers')
    this.#isLossLogged = true
    onDown()
    const pauseMs = Math.min(pauseMsMax, pauseMsMin * 2 ** this.#failures) * (0.5 + random() / 2)
    this.#failures += 1
    this.#timer = setTimeout(() => void this.#connect(), pauseMs)
  }
}

/**
 * In transaction mode a pooler forwards a notification only while one of our transactions happens to use the
 * connection that LISTENs. Our own heartbeat may then arrive while notifications of others do not. The check
 * runs before LISTEN, so that no LISTEN stays on a shared connection.
 */
async function refusePooler(client: pg.Client): Promise<void> {
  if (!(await isPooled(client))) return
  throw new Error(
    'LISTEN does not work through a pooler: set ROUSE_LISTEN_URL to the address of PostgreSQL itself',
  )
}
