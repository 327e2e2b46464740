// Runs the text of migration files inside the transaction of a step.
import type pg from 'pg'
import { MigrationError } from './migration-error.ts'
import type { FunctionFile, MigrationFile } from './migration-files.ts'

export async function applyMigration(client: pg.ClientBase, file: MigrationFile): Promise<void> {
  await runFile(client, file.name, file.sql)
}

/** Applies the files twice: functions may call each other in any order, so the first pass creates them
 * without checking bodies, and the second has PostgreSQL check every body once all functions exist. */
export async function applyFunctions(
  client: pg.ClientBase,
  files: readonly FunctionFile[],
): Promise<void> {
  for (const checkBodies of ['off', 'on']) {
    await client.query(`set local check_function_bodies = ${checkBodies}`)
    for (const file of files) await runFile(client, `functions/${file.name}`, file.sql)
  }
}

async function runFile(client: pg.ClientBase, name: string, sql: string): Promise<void> {
  try {
    await client.query(sql)
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error)
    throw new MigrationError('migration_failed', `${name}${lineOf(error, sql)}: ${message}`, {
      cause: error,
      file: name,
    })
  }
}

function lineOf(error: unknown, sql: string): string {
  const position = error instanceof Error && 'position' in error ? Number(error.position) : 0
  return position > 0 ? `:${sql.slice(0, position).split('\n').length}` : ''
}
