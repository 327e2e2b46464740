// One connection to one server of a target.
//
//   connecting   only a server that takes writes will do, where the target says so. PostgreSQL tells
//                by itself with its greeting, so that costs no round trip.
//   connected    the session gets the settings we rely on (session-settings.ts). Where a pooler is in between and the
//                server has others, every statement outside a transaction gets a transaction of its own instead
//   in use       a result that the server did not confirm is an error; a server that answers
//                "read-only" is not asked again
import { Socket } from 'node:net'
import pg from 'pg'
import { OutcomeUnknownError } from '../outcome-unknown-error.ts'
import { isTooManyConnections } from '../postgres-errors.ts'
import type { DatabaseHost } from './connection-target.ts'
import { DatabaseHostError } from './database-host-error.ts'
import { isReadOnlySession } from './host-statements.ts'
import { beginSession } from './session-statements.ts'

export interface HostClientOptions {
  readonly server: DatabaseHost
  readonly readWrite: boolean
  /** Leaves all settings as the role and the database have them. */
  readonly keepSettings?: boolean
  /** Could not be reached, or takes no writes. */
  readonly onUnfit?: (server: DatabaseHost) => void
}

type Query = (...parameters: unknown[]) => unknown
type ConnectCallback = ((error: Error) => void) | ((error: null, client: pg.Client) => void)

/** A host that is full, or refuses our login, is not the wrong one for that. */
const saysNothingOfTheRole = /^(53|28|3D)/
const readOnlyState = '25006'
const goodbyeMsMax = 2_000

export class HostClient extends pg.Client {
  readonly server: DatabaseHost
  /** Not to be used again, though its connection may still stand. */
  isRetired = false
  readonly #options: HostClientOptions
  readonly #config: pg.ClientConfig
  readonly #socket: Socket
  readonly #reported = new Map<string, string>()
  #backendPid = 0
  #underWay = 0
  #isUnconfirmed = false
  /** Known once it is connected, and has its settings. */
  #isPooled: boolean | undefined
  #begin = 'begin isolation level read committed'
  #ownTransactions = false
  /** The last own transaction; statements that are not waited for take turns. */
  #turn: Promise<unknown> = Promise.resolve()
  #isInTransaction = false
  #isOwn = false

  constructor(config: pg.ClientConfig, options: HostClientOptions) {
    const socket = new Socket()
    super({ ...config, connectionString: options.server.url, stream: () => socket })
    this.server = options.server
    this.#options = options
    this.#config = config
    this.#socket = socket
    this.connection.on('parameterStatus', ({ parameterName, parameterValue }) => {
      this.#reported.set(parameterName, parameterValue)
    })
    this.connection.on('backendKeyData', ({ processID }) => {
      this.#backendPid = processID
    })
    this.connection.on('errorMessage', ({ code }) => {
      if (code === readOnlyState) this.#unfit()
    })
    this.connection.on('readyForQuery', ({ status }) => {
      this.#isInTransaction = status !== 'I'
    })
    // The pool listens only once it has the client. An error while the session begins rejects its statement, and as an
    // event without a listener it would end the process.
    this.on('error', () => {})
    this.#refuseUnconfirmed()
  }

  /** What the server has said so far; while this stands still it says nothing. */
  get bytesRead(): number {
    return this.#socket.bytesRead
  }

  /** The process that serves it, by the word of the server; or of a pooler, which makes one up. 0: nobody said. */
  get backendPid(): number {
    return this.#backendPid
  }

  /** Whether a pooler is in between; undefined: not asked yet. */
  get isPooled(): boolean | undefined {
    return this.#isPooled
  }

  /** Whether a statement waits for its answer. */
  get isAsking(): boolean {
    return this.#underWay > 0
  }

  /** Lets go without a goodbye, which a silent server would not hear. */
  abandon(reason = 'the server is silent'): void {
    this.isRetired = true
    this.#socket.destroy(new Error(`Connection terminated: ${reason}`))
  }

  /** A silent server hears no goodbye: then the connection is cut, or whoever waits for the end would wait for ever. */
  override end(): Promise<void>
  override end(callback: (error: Error) => void): void
  override end(callback?: (error: Error) => void): Promise<void> | void {
    const timer = setTimeout(() => this.#socket.destroy(), goodbyeMsMax).unref()
    this.#socket.once('close', () => clearTimeout(timer))
    return callback === undefined ? super.end() : super.end(callback)
  }

  override connect(): Promise<pg.Client>
  override connect(callback: ConnectCallback): void
  override connect(callback?: ConnectCallback): Promise<pg.Client> | void {
    const connecting = this.#connect()
    if (callback === undefined) return connecting
    const tell = callback as (error: Error | null, client?: pg.Client) => void
    connecting.then(
      () => tell(null, this),
      (error: Error) => tell(error),
    )
  }

  async #connect(): Promise<pg.Client> {
    try {
      await super.connect()
      if (this.#options.readWrite && (await this.#isReadOnly())) {
        throw new DatabaseHostError('read_only_server', `${this.server.name} takes no writes`)
      }
      if (this.#options.keepSettings !== true) await this.#beginSession()
      return this
    } catch (error) {
      const state = error instanceof pg.DatabaseError ? error.code : undefined
      const isFull = isTooManyConnections(error)
      if (!isFull && (state === undefined || !saysNothingOfTheRole.test(state))) this.#unfit()
      this.end().catch(() => {})
      throw error
    }
  }

  async #isReadOnly(): Promise<boolean> {
    const standby = this.#reported.get('in_hot_standby')
    if (standby === undefined) return isReadOnlySession(this)
    return standby === 'on' || this.#reported.get('default_transaction_read_only') === 'on'
  }

  async #beginSession(): Promise<void> {
    const { statement_timeout } = this.#config
    const given = statement_timeout ? { statement_timeout: String(statement_timeout) } : {}
    const { isPooled, needsOwnTransactions, begin } = await beginSession(
      this,
      this.#backendPid,
      given,
    )
    this.#isPooled = isPooled
    this.#ownTransactions = needsOwnTransactions
    this.#begin = begin
  }

  #unfit(): void {
    this.isRetired = true
    this.#options.onUnfit?.(this.server)
  }

  /**
   * A server that gives up waiting for its synchronous standby says so only in a warning and reports
   * success: here that is an unknown outcome, for whoever asked and in whatever way.
   */
  #refuseUnconfirmed(): void {
    this.on('notice', ({ routine }) => {
      // The C function that raised it is the same in every language the server may speak.
      if (routine === 'SyncRepWaitForLSN') this.#isUnconfirmed = true
    })
    const query = this.query.bind(this) as Query
    const confirmed = (...parameters: unknown[]): unknown => {
      if (this.#ownTransactions) return this.#runOwn(query, parameters)
      if (this.#isPooled === true && isBegin(parameters[0])) parameters[0] = this.#begin
      const mayRepeat = !this.#isInTransaction && this.#isPooled !== undefined
      this.#underWay += 1
      const callback = parameters.at(-1)
      if (typeof callback === 'function') {
        const repeated = [...parameters]
        parameters[parameters.length - 1] = (error: Error | null, result: unknown) => {
          this.#underWay -= 1
          if (mayRepeat && isWrongIsolation(error)) {
            this.#ownTransactions = true
            this.#runOwn(query, repeated)
          } else callback(error ?? this.#takeDoubt(), result)
        }
        return query(...parameters)
      }
      return (query(...parameters) as Promise<unknown>)
        .finally(() => {
          this.#underWay -= 1
        })
        .then(
          (result) => this.#orThrow(result),
          (error: unknown) => {
            if (!mayRepeat || !isWrongIsolation(error)) throw error
            this.#ownTransactions = true
            return this.#runOwn(query, parameters)
          },
        )
    }
    this.query = confirmed as pg.Client['query']
  }

  /** Each outside a transaction gets its own; `begin` and what comes after it stay as they are, with the settings. */
  #runOwn(query: Query, parameters: readonly unknown[]): unknown {
    const callback = parameters.at(-1)
    const statement = typeof callback === 'function' ? parameters.slice(0, -1) : parameters
    this.#underWay += 1
    const running =
      this.#isInTransaction && !this.#isOwn
        ? (query(...statement) as Promise<unknown>)
        : this.#turn.then(() =>
            isBegin(statement[0]) ? query(this.#begin) : this.#inOwnTransaction(query, statement),
          )
    this.#turn = running.catch(() => {})
    const confirmed = running
      .finally(() => {
        this.#underWay -= 1
      })
      .then((result) => this.#orThrow(result))
    if (typeof callback !== 'function') return confirmed
    confirmed.then(
      (result) => callback(null, result),
      (error: unknown) => callback(error),
    )
  }

  /** A failure that did not come from the server leaves the connection in an unknown state: its owner drops it. */
  async #inOwnTransaction(query: Query, statement: readonly unknown[]): Promise<unknown> {
    this.#isOwn = true
    try {
      await query(this.#begin)
      const result = await query(...statement)
      await query('commit')
      return result
    } catch (error) {
      if (error instanceof pg.DatabaseError)
        await (query('rollback') as Promise<unknown>).catch(() => {})
      throw error
    } finally {
      this.#isOwn = false
    }
  }

  #orThrow(result: unknown): unknown {
    const doubt = this.#takeDoubt()
    if (doubt !== null) throw doubt
    return result
  }

  #takeDoubt(): Error | null {
    if (!this.#isUnconfirmed) return null
    this.#isUnconfirmed = false
    return new OutcomeUnknownError(new Error('the wait for the synchronous standby was cancelled'))
  }
}

function isBegin(statement: unknown): boolean {
  return typeof statement === 'string' && /^begin\b/i.test(statement)
}

/** Refused by a function of ours before it changed anything. */
function isWrongIsolation(error: unknown): boolean {
  return (
    error instanceof pg.DatabaseError &&
    error.code === 'RS400' &&
    error.detail?.includes('"wrong_isolation"') === true
  )
}
