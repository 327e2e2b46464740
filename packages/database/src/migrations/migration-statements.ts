// The bookkeeping of migrations: its lock, its two tables, and the statements that read and write them.
import type pg from 'pg'
import type { AppliedMigration, AppliedState } from './migration-decisions.ts'
import type { FunctionSet, MigrationFile } from './migration-files.ts'

/** An arbitrary constant; every version of Rouse must use the same one. */
const advisoryLockKey = 7_687_301
const advisoryLockWaitMs = 2_000

/** Begins every step: ensures that one node migrates at a time, and sets the timeouts of the step. */
export async function lockMigrations(client: pg.ClientBase, lockTimeoutMs: number): Promise<void> {
  await client.query(`set local statement_timeout = 0`)
  await client.query(`set local lock_timeout = ${advisoryLockWaitMs}`)
  await client.query('select pg_advisory_xact_lock($1)', [advisoryLockKey])
  await client.query(`set local lock_timeout = ${lockTimeoutMs}`)
}

/** Creates only what is missing, so that a role without the right to create can use a prepared database. */
export async function ensureBookkeeping(client: pg.ClientBase): Promise<void> {
  if (await bookkeepingIsComplete(client)) return
  await client.query(`
    create schema if not exists rouse;
    create table if not exists rouse.migrations (
      version int primary key,
      name text not null,
      checksum text not null,
      applied_at timestamptz not null default clock_timestamp()
    );
    alter table rouse.migrations add column if not exists works_with int;
    create table if not exists rouse.function_sets (
      version int primary key,
      checksum text not null,
      applied_at timestamptz not null default clock_timestamp()
    );
  `)
}

export async function readApplied(client: pg.ClientBase): Promise<AppliedState> {
  if (!(await bookkeepingExists(client))) return { migrations: [], functions: undefined }
  // works_with is read through jsonb, because an older database does not have the column yet, and a dry run
  // does not add it.
  const migrations = await client.query<AppliedMigration>(
    `select version, name, checksum, (to_jsonb(m) ->> 'works_with')::int as "worksWith"
     from rouse.migrations m order by version`,
  )
  const functions = await client.query<{ version: number; checksum: string }>(
    'select version, checksum from rouse.function_sets order by version desc limit 1',
  )
  return { migrations: migrations.rows, functions: functions.rows[0] }
}

export async function recordMigration(client: pg.ClientBase, file: MigrationFile): Promise<void> {
  await client.query(
    'insert into rouse.migrations (version, name, checksum, works_with) values ($1, $2, $3, $4)',
    [file.version, file.name, file.checksum, file.worksWith],
  )
}

export async function recordFunctions(client: pg.ClientBase, set: FunctionSet): Promise<void> {
  await client.query(
    `insert into rouse.function_sets (version, checksum) values ($1, $2)
     on conflict (version) do update
     set checksum = excluded.checksum, applied_at = excluded.applied_at`,
    [set.version, set.checksum],
  )
}

async function bookkeepingIsComplete(client: pg.ClientBase): Promise<boolean> {
  if (!(await bookkeepingExists(client))) return false
  const { rowCount } = await client.query(
    `select from pg_attribute where attrelid = 'rouse.migrations'::regclass and attname = 'works_with'`,
  )
  return rowCount === 1
}

async function bookkeepingExists(client: pg.ClientBase): Promise<boolean> {
  const { rows } = await client.query<{ exists: boolean }>(
    `select to_regclass('rouse.function_sets') is not null as exists`,
  )
  return rows[0]?.exists === true
}
