// What a failed database call means for its caller.
//
//   unavailable      no server can be reached at the moment: wait and reconnect. If a statement was sent
//                    outside a transaction, check provesNotCommitted before repeating it.
//   retryable        rolled back through no fault of the caller (deadlock, lock or statement timeout, stale
//                    plan, RS001): repeat the same call.
//   conflict         RS409: the caller's claim is stale (a lost lease). Repeating cannot help.
//   outcome_unknown  the connection died during COMMIT, or a commit was not confirmed.
//   invalid          the input is at fault: class 22, and every other RS code. The SQL functions put a JSON
//                    object into DETAIL.
//   other            a defect or an unexpected error.
import { DatabaseHostError } from './hosts/database-host-error.ts'
import { OutcomeUnknownError } from './outcome-unknown-error.ts'

export type PostgresErrorClass =
  | 'unavailable'
  | 'retryable'
  | 'conflict'
  | 'outcome_unknown'
  | 'invalid'
  | 'other'

export function classifyPostgresError(error: unknown): PostgresErrorClass {
  if (error instanceof OutcomeUnknownError) return 'outcome_unknown'
  if (!(error instanceof Error)) return 'other'
  if (isAggregate(error)) return classifyPostgresError(error.errors[0])
  const state = sqlState(error)
  if (state !== undefined && endsSession(error) && !isRefusedLogin(state)) return 'unavailable'
  if (state !== undefined) return classifySqlState(state, error.message)
  if (neverConnected(error) || lostConnection(error)) return 'unavailable'
  return 'other'
}

/** True if the failed statement (or COMMIT) certainly changed nothing: the server reported an error, or was
 * never reached. False if the connection was lost after something may have been sent. Also false if the
 * server ended the session: after a PANIC, recovery may still find a commit record that could not be flushed,
 * and a FATAL error may end a session after its commit and before the answer. */
export function provesNotCommitted(error: unknown): boolean {
  if (!(error instanceof Error)) return false
  if (isAggregate(error)) return error.errors.every(provesNotCommitted)
  const state = sqlState(error)
  if (state === undefined) return neverConnected(error)
  if (connectStates.has(state) || isRefusedLogin(state) || isTooManyConnections(error)) return true
  // Class 08 concerns the connection itself; poolers send it as an ordinary error.
  return leavesSession(error) && !state.startsWith('08')
}

/** Whether the server, or a pooler in front of it, has no room for another connection. A pool that has
 * connections continues with those; only a pool without any treats the server as unavailable. */
export function isTooManyConnections(error: unknown): boolean {
  if (!(error instanceof Error)) return false
  if (isAggregate(error)) return error.errors.some(isTooManyConnections)
  return sqlState(error) === '53300' || (sqlState(error) === '08P01' && noRoom.test(error.message))
}

/** The texts of poolers, which have no specific code for this. */
const noRoom =
  /no more connections allowed|too many (connections|clients)|connection slots are reserved/

/** The server sends these before the session starts, so no statement can have run. */
const connectStates = new Set([
  '57P03', // cannot_connect_now: starting up or shutting down
  '53300', // too_many_connections
])

/** Wrong password, unknown role or database. */
function isRefusedLogin(state: string): boolean {
  return state.startsWith('28') || state.startsWith('3D')
}

function endsSession(error: Error): boolean {
  return 'severity' in error && (error.severity === 'FATAL' || error.severity === 'PANIC')
}

/**
 * Servers with another language translate the severity, so the result is false for them. False is always
 * safe.
 */
function leavesSession(error: Error): boolean {
  return 'severity' in error && error.severity === 'ERROR'
}

const unavailableStates = new Set([
  '57P01', // admin_shutdown
  '57P02', // crash_shutdown
  '57P03', // cannot_connect_now: starting up or shutting down
  '53300', // too_many_connections
  '53100', // disk_full
  '58030', // io_error
  '25006', // read_only_sql_transaction: a standby, after a failover
])

const retryableStates = new Set([
  '40001', // serialization_failure
  '40P01', // deadlock_detected
  '55P03', // lock_not_available: lock_timeout
  '57014', // query_canceled: statement_timeout
  'RS001', // Rouse: a queue or a lane changed during the call
])

function classifySqlState(state: string, message: string): PostgresErrorClass {
  if (retryableStates.has(state)) return 'retryable'
  if (unavailableStates.has(state) || state.startsWith('08')) return 'unavailable'
  if (state === 'RS409') return 'conflict'
  if (state.startsWith('RS') || state.startsWith('22')) return 'invalid'
  // A prepared `select *` whose table changed; the next attempt plans again.
  if (state === '0A000' && message.includes('cached plan must not change result type')) {
    return 'retryable'
  }
  return 'other'
}

const connectFailures = new Set([
  'ECONNREFUSED',
  'ENOTFOUND',
  'EAI_AGAIN',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'EADDRNOTAVAIL',
])

function neverConnected(error: Error): boolean {
  if (error instanceof DatabaseHostError) return error.code !== 'bad_target'
  if (connectFailures.has(codeOf(error) ?? '')) return true
  // pg and pg-pool report these without a code.
  return /^timeout exceeded when trying to connect|^Connection terminated due to connection timeout|^timeout expired$/.test(
    error.message,
  )
}

const connectionLosses = new Set(['ECONNRESET', 'EPIPE', 'ETIMEDOUT', 'ECONNABORTED'])

function lostConnection(error: Error): boolean {
  if (connectionLosses.has(codeOf(error) ?? '')) return true
  return /^Connection terminated|^Client has encountered a connection error|^Query read timeout/.test(
    error.message,
  )
}

/** A host name with several addresses fails with one error for each of them. */
function isAggregate(error: Error): error is AggregateError {
  return error instanceof AggregateError && error.errors.length > 0
}

/** The SQLSTATE of an error from the server: five capitals or digits. System errors have other codes. */
function sqlState(error: Error): string | undefined {
  const code = codeOf(error)
  return code !== undefined && 'severity' in error && /^[0-9A-Z]{5}$/.test(code) ? code : undefined
}

function codeOf(error: Error): string | undefined {
  return 'code' in error && typeof error.code === 'string' ? error.code : undefined
}
