import type pg from 'pg'
import { parseConnectionTarget } from './connection-target.ts'
import { HostPool, type PoolLimit } from './host-pool.ts'

export interface PoolOptions {
  /** Of one server, or of several of which one takes writes. */
  readonly url: string
  /** Connections the pool holds at most; further callers wait for one. */
  readonly max: number
  /** What pg_stat_activity shows, so that an operator sees which process holds a lock. */
  readonly applicationName: string
  /** Sent as a start-up parameter: pgbouncer wants it named in ignore_startup_parameters, and does not pass it on. */
  readonly statementTimeoutMs?: number
  readonly connectTimeoutMs?: number
  /** Leaves the settings of its sessions as the role and the database have them, as a user's own connection does. */
  readonly keepSettings?: boolean
  /** From 0 to 1, for jitter. */
  readonly random?: () => number
  /** Told when the server has no room for as many connections, and when it has again. */
  readonly onLimit?: (limit: PoolLimit) => void
}

const connectTimeoutMsDefault = 5_000

/**
 * A pool whose dead connections never crash the process: pg emits `error` on a client that dies
 * while nobody awaits it, and an unheard `error` event ends Node. The pool drops such a client by
 * itself, and whoever uses it next gets the failure from its own query.
 */
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
  // The pool listens on idle clients only; a client that was handed out needs its own listener.
  pool.on('connect', (client) => client.on('error', ignoreIdleClientError))
  return pool
}

function ignoreIdleClientError(): void {}
