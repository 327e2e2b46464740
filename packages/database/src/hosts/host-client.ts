// One connection to one server of a target.
//
//   connecting   if the target allows only servers that accept writes, a read-only server is refused.
//                PostgreSQL reports at session start whether the session is read-only, so the check costs no
//                round trip
//   connected    the session gets the settings that Rouse relies on (session-settings.ts). Behind a pooler
//                the session cannot keep settings. If a setting of the server is harmful, the client wraps
//                each statement that is outside a transaction in a transaction with the right settings
//   in use       a commit that the synchronous standby did not confirm is an error; a server that answers
//                "read-only" is not used again
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
  /** Leaves all settings as configured for the role and the database. */
  readonly keepSettings?: boolean
  /** Called if the server is unreachable or does not accept writes. */
  readonly onUnfit?: (server: DatabaseHost) => void
}

type Query = (...parameters: unknown[]) => unknown
type ConnectCallback = ((error: Error) => void) | ((error: null, client: pg.Client) => void)

/** Errors of a server that is full or refuses our login. Such a server may still be the one that accepts
 * writes. */
const saysNothingOfTheRole = /^(53|28|3D)/
const readOnlyState = '25006'
const endMsMax = 2_000

export class HostClient extends pg.Client {
  readonly server: DatabaseHost
  /** True if the client must not be used again, although its connection may still be open. */
  isRetired = false
  /** How often the pool handed out this client. */
  uses = 0
  readonly #options: HostClientOptions
  readonly #config: pg.ClientConfig
  readonly #socket: Socket
  readonly #reported = new Map<string, string>()
  #backendPid = 0
  #underWay = 0
  #isUnconfirmed = false
  /** Undefined until the client is connected and configured. */
  #isPooled: boolean | undefined
  #begin = 'begin isolation level read committed'
  #ownTransactions = false
  /** The last wrapped transaction. The next one starts when this one has ended. */
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
    // The pool adds its listener only after the session has started. Without a listener, an error event
    // during session start would end the process. The caller still gets the error: the statement rejects.
    this.on('error', () => {})
    this.#refuseUnconfirmed()
  }

  /** Bytes received so far; constant while the server is silent. */
  get bytesRead(): number {
    return this.#socket.bytesRead
  }

  /** The backend pid that the server reported, or one that a pooler made up. 0 if none was reported. */
  get backendPid(): number {
    return this.#backendPid
  }

  /** Whether a pooler is between this client and the server; undefined until it is checked. */
  get isPooled(): boolean | undefined {
    return this.#isPooled
  }

  /** Whether a statement is waiting for its result. */
  get isAsking(): boolean {
    return this.#underWay > 0
  }

  /** Closes the connection without a Terminate message, which a silent server would not read. */
  abandon(reason = 'the server is silent'): void {
    this.isRetired = true
    this.#socket.destroy(new Error(`Connection terminated: ${reason}`))
  }

  /** After a timeout the connection is cut, because a silent server does not read the Terminate message, and
   * the caller would wait forever. */
  override end(): Promise<void>
  override end(callback: (error: Error) => void): void
  override end(callback?: (error: Error) => void): Promise<void> | void {
    const timer = setTimeout(() => this.#socket.destroy(), endMsMax).unref()
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
        throw new DatabaseHostError('read_only_server', `${this.server.name} accepts no writes`)
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

  /** If a server stops waiting for its synchronous standby, it only raises a warning and reports success. The
   * client treats that as an unknown outcome, for every caller and every query interface. */
  #refuseUnconfirmed(): void {
    this.on('notice', ({ routine }) => {
      // The name of the C function does not depend on the server's language.
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
          } else callback(error ?? this.#takeUnconfirmed(), result)
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

  /** Wraps each statement that is outside a transaction in a transaction that applies the settings. An
   * explicit `begin` also applies the settings; the statements after it run unchanged. */
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

  /** Rolls back after an error of the server. After any other failure the state of the connection is unknown,
   * and the owner of the connection drops it. */
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
    const unconfirmed = this.#takeUnconfirmed()
    if (unconfirmed !== null) throw unconfirmed
    return result
  }

  #takeUnconfirmed(): Error | null {
    if (!this.#isUnconfirmed) return null
    this.#isUnconfirmed = false
    return new OutcomeUnknownError(new Error('the wait for the synchronous standby was cancelled'))
  }
}

function isBegin(statement: unknown): boolean {
  return typeof statement === 'string' && /^begin\b/i.test(statement)
}

/** Whether one of our SQL functions refused the call, which it does before it changes anything. */
function isWrongIsolation(error: unknown): boolean {
  return (
    error instanceof pg.DatabaseError &&
    error.code === 'RS400' &&
    error.detail?.includes('"wrong_isolation"') === true
  )
}
