import { setTimeout as delay } from 'node:timers/promises'
import {
  checkServerVersion,
  classifyPostgresError,
  createPool,
  describeMigrationWait,
  type MigrationWait,
  migrate,
} from '@rouse/database'
import {
  type ClusterIdentity,
  joinCluster,
  type KeyTable,
  readKeyTable,
  serverConnectionsMax,
  writeNotifySetting,
  writeServerDefaults,
} from '@rouse/storage'
import type pg from 'pg'
import { registerInitialKey } from '../auth/initial-key.ts'
import type { Config } from '../config/config.ts'
import { type Logger, logLimit } from '../log.ts'

const retryMs = 1_000
const logEveryMs = 60_000
const migrationConnections = 2

export interface PreparedDatabase {
  readonly identity: ClusterIdentity
  /** The server's max_connections. */
  readonly serverConnections: number
  readonly keyTable: KeyTable
}

/**
 * Migrates the database, writes the queue defaults and joins the cluster. While the database is unavailable
 * or others hold locks on it, waits without a time limit. Every step is idempotent. Returns undefined if
 * `stopped` resolves first.
 */
export async function prepareDatabase(options: {
  readonly pool: pg.Pool
  readonly config: Config
  readonly log: Logger
  readonly stopped: Promise<unknown>
  /** A number from 0 to 1. Spreads the retries of nodes that wait for the same server. */
  readonly random: () => number
  /** Receives the reason for waiting, for `/ready`. */
  readonly onWait: (reason: string) => void
}): Promise<PreparedDatabase | undefined> {
  const { pool, config, log, onWait } = options
  const stopping = new AbortController()
  void options.stopped.then(() => stopping.abort())
  const waits = waitLog(log)
  for (;;) {
    try {
      await bringToVersion(pool, config, log, stopping.signal, (wait) => {
        const reason = describeMigrationWait(wait)
        onWait(reason)
        waits.log(
          `lock ${wait.what}`,
          { reason },
          'waiting for a lock before migrating the database',
        )
      })
      await writeServerDefaults(pool, config.queueDefaults)
      const identity = await joinCluster(pool)
      await writeNotifySetting(pool, config.notify === 'on')
      await registerInitialKey(pool, config, log)
      const keyTable = await readKeyTable(pool)
      return { identity, serverConnections: await serverConnectionsMax(pool), keyTable }
    } catch (error) {
      if (stopping.signal.aborted) return undefined
      if (!isPassing(error)) throw error
      const reason = (error as Error).message
      onWait(`PostgreSQL is unavailable: ${reason}`)
      waits.log('unavailable', { reason }, 'waiting for PostgreSQL')
      await delay(retryMs * (0.5 + options.random()))
    }
  }
}

/** Logs the first wait of each kind at once, then each kind at most once a minute. */
function waitLog(log: Logger) {
  const loggedAtMs = new Map<string, number>()
  return {
    log(kind: string, fields: object, message: string): void {
      const last = loggedAtMs.get(kind)
      if (last !== undefined && performance.now() - last < logEveryMs) return
      loggedAtMs.set(kind, performance.now())
      log.warn(fields, message)
    },
  }
}

/** Whether a retry may succeed. A migration error wraps the error of its statement. */
function isPassing(error: unknown): boolean {
  const kind = classifyPostgresError(error)
  if (kind === 'unavailable' || kind === 'outcome_unknown') return true
  return error instanceof Error && error.cause instanceof Error && isPassing(error.cause)
}

async function bringToVersion(
  pool: pg.Pool,
  config: Config,
  log: Logger,
  signal: AbortSignal,
  onWait: (wait: MigrationWait) => void,
): Promise<void> {
  if (config.migrate === 'off') {
    await checkServerVersion(pool)
    return
  }
  const dryRun = config.migrate === 'check'
  const owner = ownerPool(config, log)
  try {
    const { applied, functions } = await migrate({
      pool: owner ?? pool,
      dryRun,
      log: (line) => log.info(line),
      patienceMs: Number.POSITIVE_INFINITY,
      signal,
      onWait,
    })
    requireUpToDate(dryRun ? [...applied, ...functions] : [])
  } catch (error) {
    throw owner === undefined ? withMissingOwner(error) : error
  } finally {
    await owner?.end()
  }
}

function requireUpToDate(missing: readonly string[]): void {
  if (missing.length === 0) return
  throw new Error(`the database schema is out of date: ${missing.length} files are to be applied`)
}

/** Undefined if the login of the node migrates. */
function ownerPool({ migrateUrl, nodeId }: Config, log: Logger): pg.Pool | undefined {
  if (migrateUrl === undefined) return undefined
  return createPool({
    url: migrateUrl,
    max: migrationConnections,
    applicationName: `rouse ${nodeId} migrate`,
    onLimit: logLimit(log),
  })
}

/** A login that does not own the schema cannot migrate it. */
function withMissingOwner(error: unknown): unknown {
  const cause = error instanceof Error ? (error.cause ?? error) : error
  if (!(cause instanceof Error && 'code' in cause && cause.code === '42501')) return error
  const fix =
    'set ROUSE_MIGRATE_URL to a login that owns the schema, or run "rouse migrate" with it'
  return new Error(`${(error as Error).message}; ${fix}`, { cause })
}
