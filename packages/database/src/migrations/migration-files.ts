// Reads a migrations folder:
//
//   NNNN_name.sql        a forward-only migration; never edited once it has been applied anywhere. A line
//                        `-- works-with: N` names the oldest release (the VERSION of its functions) whose
//                        nodes work with this migration
//   functions/**.sql     `create or replace`; all files are applied again when any of them changes, in the
//                        order of their paths, except that functions/grants.sql comes last
//   functions/VERSION    the release, a number; raised when an older node must not replace the functions
import { createHash } from 'node:crypto'
import { existsSync } from 'node:fs'
import { readdir, readFile } from 'node:fs/promises'
import { join, sep } from 'node:path'
import { fileURLToPath } from 'node:url'
import { MigrationError } from './migration-error.ts'

export interface MigrationFile {
  readonly version: number
  readonly name: string
  readonly sql: string
  readonly checksum: string
  /** The oldest release whose nodes work with this migration. If undefined, only releases that contain the
   * file work with it. */
  readonly worksWith: number | undefined
}

export interface FunctionFile {
  readonly name: string
  readonly sql: string
}

export interface FunctionSet {
  readonly version: number
  readonly checksum: string
  readonly files: readonly FunctionFile[]
}

export interface MigrationFiles {
  readonly migrations: readonly MigrationFile[]
  readonly functions: FunctionSet | undefined
}

/** The repository's folder; `src` and `dist` are at the same depth, so the path is valid for both. */
export const migrationsDirectory = fileURLToPath(new URL('../../../../migrations', import.meta.url))

export async function readMigrationFiles(directory = migrationsDirectory): Promise<MigrationFiles> {
  return {
    migrations: await readMigrations(directory),
    functions: await readFunctions(join(directory, 'functions')),
  }
}

async function readMigrations(directory: string): Promise<MigrationFile[]> {
  const files = await readSqlFiles(directory)
  const seen = new Map<number, string>()
  return files.map(({ name, sql }) => {
    const digits = /^(\d{4})_[a-z0-9_]+\.sql$/.exec(name)?.[1]
    if (digits === undefined) {
      throw new MigrationError('bad_migration_name', `${name}: expected NNNN_name.sql`)
    }
    const version = Number(digits)
    const twin = seen.get(version)
    if (twin !== undefined) {
      throw new MigrationError('bad_migration_name', `${name}: ${twin} has the same number`)
    }
    seen.set(version, name)
    const worksWith = /^-- works-with: (\d+)$/m.exec(sql)?.[1]
    return {
      version,
      name,
      sql,
      checksum: sha256(sql),
      worksWith: worksWith === undefined ? undefined : Number(worksWith),
    }
  })
}

async function readFunctions(directory: string): Promise<FunctionSet | undefined> {
  if (!existsSync(directory)) return undefined
  const files = await readFunctionFiles(directory)
  if (files.length === 0) return undefined
  const version = await readFile(join(directory, 'VERSION'), 'utf8').catch(() => '')
  if (!/^\d+$/.test(version.trim())) {
    throw new MigrationError(
      'functions_version_missing',
      'functions/VERSION must hold a plain number',
    )
  }
  const checksum = sha256(files.map(({ name, sql }) => `${name}\0${sql}\0`).join(''))
  return { version: Number(version), checksum, files }
}

/** Applied last, when all functions exist: this file replaces the default grants of the functions. */
const lastFile = 'grants.sql'

async function readFunctionFiles(directory: string): Promise<FunctionFile[]> {
  const files = await readSqlFiles(directory, { recursive: true })
  const isLast = ({ name }: FunctionFile): boolean => name === lastFile
  return [...files.filter((file) => !isLast(file)), ...files.filter(isLast)]
}

/**
 * Ordered by path. Line endings and separators are normalised; otherwise every file would look edited in a
 * checkout on Windows.
 */
async function readSqlFiles(
  directory: string,
  { recursive = false } = {},
): Promise<FunctionFile[]> {
  const paths = await readdir(directory, { recursive })
  const files = await Promise.all(
    paths
      .filter((path) => path.endsWith('.sql'))
      .map(async (path) => {
        const text = await readFile(join(directory, path), 'utf8')
        return { name: path.replaceAll(sep, '/'), sql: text.replaceAll('\r\n', '\n') }
      }),
  )
  return files.toSorted((one, other) => (one.name < other.name ? -1 : 1))
}

function sha256(text: string): string {
  return createHash('sha256').update(text).digest('hex')
}
