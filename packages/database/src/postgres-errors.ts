// What a failed database call means to its caller.
//
//   unavailable      no server to talk to just now: wait and reconnect. After a statement was sent
//                    without a transaction around it, ask provesNotCommitted before repeating it.
//   retryable        rolled back through no fault of the caller (deadlock, lock or statement
//                    timeout, plan gone stale, RS001): the same call may simply be made again.
//   conflict         RS409: the caller's claim is stale (a lost lease). Repeating cannot help.
//   outcome_unknown  the connection died under COMMIT, or a commit was not confirmed.
//   invalid          the input is at fault: class 22, and every other RS code. The functions of
//                    Rouse put a JSON object into DETAIL.
//   other            a defect or an error nobody foresaw.
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

/**
 * True when the failed statement (or COMMIT) certainly left nothing behind: the server said so, or
 * was never reached. False when the connection was lost after something may have been sent, and when
 * the server ended the session: a commit record that could not be flushed (PANIC) may still be found
 * by recovery, and a session may be told to go (FATAL) after its commit and before the answer.
 */
export function provesNotCommitted(error: unknown): boolean {
  if (!(error instanceof Error)) return false
  if (isAggregate(error)) return error.errors.every(provesNotCommitted)
  const state = sqlState(error)
  if (state === undefined) return neverConnected(error)
  if (connectStates.has(state) || isRefusedLogin(state) || isTooManyConnections(error)) return true
  // Class 08 is about the connection itself; poolers send it as an error like any other.
  return leavesSession(error) && !state.startsWith('08')
}

/**
 * The server, or a pooler before it, has no room for one more connection. A pool that has some goes on with those; only one
 * that has none finds the server unavailable.
 */
export function isTooManyConnections(error: unknown): boolean {
  if (!(error instanceof Error)) return false
  if (isAggregate(error)) return error.errors.some(isTooManyConnections)
  return sqlState(error) === '53300' || (sqlState(error) === '08P01' && noRoom.test(error.message))
}

/** Poolers have no code of their own for it. */
const noRoom =
  /no more connections allowed|too many (connections|clients)|connection slots are reserved/

/** Sent in place of a greeting, before any statement. */
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

/** The word is translated by servers that speak another language; those prove less. */
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
  'RS001', // Rouse: a row vanished under a lock
])

function classifySqlState(state: string, message: string): PostgresErrorClass {
  if (retryableStates.has(state)) return 'retryable'
  if (unavailableStates.has(state) || state.startsWith('08')) return 'unavailable'
  if (state === 'RS409') return 'conflict'
  if (state.startsWith('RS') || state.startsWith('22')) return 'invalid'
  // A prepared `select *` whose table changed under it; the next attempt plans afresh.
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
  // pg and pg-pool say these without a code.
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

/** System errors have codes too; a SQLSTATE is five capitals or digits that the server sent. */
function sqlState(error: Error): string | undefined {
  const code = codeOf(error)
  return code !== undefined && 'severity' in error && /^[0-9A-Z]{5}$/.test(code) ? code : undefined
}

function codeOf(error: Error): string | undefined {
  return 'code' in error && typeof error.code === 'string' ? error.code : undefined
}
