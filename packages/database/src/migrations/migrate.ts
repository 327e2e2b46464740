// Brings a database to the version of the migrations folder.
//
// Several nodes may start at once, with different versions, through pgbouncer in transaction mode. So every
// step is one transaction. It first takes an advisory lock, the same in all steps, and decides from what it
// reads under that lock. Nothing is remembered between steps, and no setting outlives a step.
//
// While a step waits for a lock, every other session that needs the table queues behind it. Running nodes
// must keep serving, so each try waits only for `lockTimeoutMs` and is then repeated.
import { setTimeout as delay } from 'node:timers/promises'
import type pg from 'pg'
import { createPool } from '../hosts/pool.ts'
import { classifyPostgresError } from '../postgres-errors.ts'
import { checkServerVersion } from '../server-version.ts'
import { withTransaction } from '../transaction.ts'
import { decideFunctions, decideMigrations } from './migration-decisions.ts'
import { MigrationError } from './migration-error.ts'
import { type MigrationFiles, readMigrationFiles } from './migration-files.ts'
import { type MigrationWait, watchLock } from './migration-locks.ts'
import {
  ensureBookkeeping,
  lockMigrations,
  readApplied,
  recordFunctions,
  recordMigration,
} from './migration-statements.ts'
import { applyFunctions, applyMigration } from './migration-step.ts'

export interface MigrateOptions {
  /** The address of the database, if no `pool` is given. A given `pool` stays open. */
  readonly url?: string
  readonly pool?: pg.Pool
  readonly directory?: string
  /** Stops after this migration. Functions are applied only if it is the newest one. */
  readonly version?: number
  /** Reports what would be applied, and changes nothing. */
  readonly dryRun?: boolean
  readonly log?: (line: string) => void
  /** How long to wait for locks that others hold; by default one minute. */
  readonly patienceMs?: number
  /** Called after each failed try for a lock. */
  readonly onWait?: (wait: MigrationWait) => void
  /** Aborts the wait. */
  readonly signal?: AbortSignal
  /** Lets tests insert barriers into functions. The result does not affect the checksum, so a node that
   * migrates the same database later leaves the instrumented functions in place. */
  readonly transformFunction?: (name: string, sql: string) => string
}

export interface MigrateResult {
  readonly applied: string[]
  readonly functions: string[]
}

/** DDL waits this long for a lock. Then it fails, so that the sessions queued behind it can continue. */
const lockTimeoutMs = 200
const lockPauseMs = 2_000
const patienceMsDefault = 60_000
const stepAttemptsMax = 5

export async function migrate(options: MigrateOptions): Promise<MigrateResult> {
  const files = await readMigrationFiles(options.directory)
  if (options.pool !== undefined) return migrateWith(options.pool, files, options)
  if (options.url === undefined) throw new TypeError('migrate needs a url or a pool')
  const pool = createPool({ url: options.url, max: 2, applicationName: 'rouse migrate' })
  try {
    return await migrateWith(pool, files, options)
  } finally {
    await pool.end()
  }
}

async function migrateWith(
  pool: pg.Pool,
  files: MigrationFiles,
  options: MigrateOptions,
): Promise<MigrateResult> {
  await checkServerVersion(pool)
  if (options.dryRun === true) return planOnly(pool, files, options)
  const applied: string[] = []
  await step(pool, options, ensureBookkeeping)
  for (;;) {
    const name = await step(pool, options, (client) => applyNextMigration(client, files, options))
    if (name === undefined) break
    applied.push(name)
    options.log?.(`applied ${name}`)
  }
  const functions = await step(pool, options, (client) => applyFunctionSet(client, files, options))
  if (functions.length > 0) options.log?.(`applied ${functions.length} function files`)
  return { applied, functions }
}

async function planOnly(
  pool: pg.Pool,
  files: MigrationFiles,
  options: MigrateOptions,
): Promise<MigrateResult> {
  const state = await withTransaction(pool, readApplied)
  const pending = decideMigrations(files, state.migrations, options.version)
  const functions = decideFunctions(files, state, options.version)
  return {
    applied: pending.map(({ name }) => name),
    functions: functions.map(({ name }) => name),
  }
}

async function applyNextMigration(
  client: pg.PoolClient,
  files: MigrationFiles,
  options: MigrateOptions,
): Promise<string | undefined> {
  const state = await readApplied(client)
  const [next] = decideMigrations(files, state.migrations, options.version)
  if (next === undefined) return undefined
  await applyMigration(client, next)
  await recordMigration(client, next)
  return next.name
}

async function applyFunctionSet(
  client: pg.PoolClient,
  files: MigrationFiles,
  options: MigrateOptions,
): Promise<string[]> {
  const state = await readApplied(client)
  const pending = decideFunctions(files, state, options.version)
  if (files.functions === undefined || pending.length === 0) return []
  const transform = options.transformFunction ?? ((_name, sql) => sql)
  await applyFunctions(
    client,
    pending.map(({ name, sql }) => ({ name, sql: transform(name, sql) })),
  )
  await recordFunctions(client, files.functions)
  return pending.map(({ name }) => name)
}

async function step<Result>(
  pool: pg.Pool,
  options: MigrateOptions,
  work: (client: pg.PoolClient) => Promise<Result>,
): Promise<Result> {
  const patience = performance.now() + (options.patienceMs ?? patienceMsDefault)
  for (let attempt = 1; ; ) {
    const watch = watchLock(pool)
    try {
      return await withTransaction(pool, async (client) => {
        await watch.start(client)
        await lockMigrations(client, lockTimeoutMs)
        return work(client)
      })
    } catch (error) {
      if (isLockTimeout(error) && performance.now() < patience) {
        const what = (error instanceof MigrationError && error.file) || 'the migrations'
        options.onWait?.({ what, ...watch.found() })
        await delay(lockPauseMs, undefined, { signal: options.signal })
      } else if (attempt < stepAttemptsMax && isRetryable(error)) attempt += 1
      else throw error
    } finally {
      watch.stop()
    }
  }
}

/** The MigrationError of a file wraps the error of the statement that failed. */
function causeOf(error: unknown): unknown {
  return error instanceof MigrationError && error.cause !== undefined ? error.cause : error
}

function isLockTimeout(error: unknown): boolean {
  const cause = causeOf(error)
  return cause instanceof Error && 'code' in cause && cause.code === '55P03'
}

function isRetryable(error: unknown): boolean {
  return classifyPostgresError(causeOf(error)) === 'retryable'
}
