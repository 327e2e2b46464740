import type pg from 'pg'
import { parseConnectionTarget } from './connection-target.ts'
import { HostPool, type PoolLimit } from './host-pool.ts'

export interface PoolOptions {
  /** The address of one server, or of several of which one accepts writes. */
  readonly url: string
  /** Maximum number of connections; further callers wait for one. */
  readonly max: number
  /** Shown in pg_stat_activity, so that an operator sees which process holds a lock. */
  readonly applicationName: string
  /** Sent as a start-up parameter. pgbouncer refuses the connection unless its ignore_startup_parameters
   * lists the parameter. Even then pgbouncer does not pass the parameter on to the server. */
  readonly statementTimeoutMs?: number
  readonly connectTimeoutMs?: number
  /**
   * Leaves the session settings as configured for the role and the database, like a user's own connection.
   */
  readonly keepSettings?: boolean
  /** From 0 to 1, for jitter. */
  readonly random?: () => number
  /** Called when the server has no room for all connections, and when it has room again. */
  readonly onLimit?: (limit: PoolLimit) => void
}

const connectTimeoutMsDefault = 5_000

/** A pool whose dead connections never crash the process. pg emits `error` on a client that dies between
 * queries, and an `error` event without a listener would end the process. The pool drops such a client, and
 * the next query on it fails. */
export function createPool(options: PoolOptions): pg.Pool {
  const connectTimeoutMs = options.connectTimeoutMs ?? connectTimeoutMsDefault
  const pool = new HostPool({
    target: parseConnectionTarget(options.url),
    clientConfig: {
      application_name: options.applicationName,
      keepAlive: true,
      ...(options.statementTimeoutMs !== undefined && {
        statement_timeout: options.statementTimeoutMs,
      }),
    },
    max: options.max,
    connectTimeoutMs,
    random: options.random ?? Math.random,
    keepSettings: options.keepSettings ?? false,
    onLimit: options.onLimit ?? (() => {}),
  })
  pool.on('error', ignoreIdleClientError)
  // The pool listens on idle clients only; a checked-out client needs its own listener.
  pool.on('connect', (client) => client.on('error', ignoreIdleClientError))
  return pool
}

function ignoreIdleClientError(): void {}
