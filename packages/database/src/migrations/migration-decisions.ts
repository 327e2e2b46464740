// Decides what to apply, from the files and from what the database has recorded.
import { MigrationError } from './migration-error.ts'
import type { FunctionFile, MigrationFile, MigrationFiles } from './migration-files.ts'

export interface AppliedMigration {
  readonly version: number
  readonly name: string
  readonly checksum: string
  /** The oldest release whose nodes work with this migration; null if the migration does not name one. */
  readonly worksWith: number | null
}

export interface AppliedState {
  readonly migrations: readonly AppliedMigration[]
  /** The newest set of functions ever applied. */
  readonly functions: { readonly version: number; readonly checksum: string } | undefined
}

/** The migrations to apply, oldest first. Throws if the recorded history does not match the files.
 * Migrations of a newer release are accepted if they declare that our release works with them. */
export function decideMigrations(
  { migrations: files, functions }: MigrationFiles,
  applied: readonly AppliedMigration[],
  versionMax = Number.POSITIVE_INFINITY,
): MigrationFile[] {
  const release = functions?.version ?? 0
  const newestFile = files.at(-1)?.version ?? 0
  const newestApplied = applied.at(-1)?.version ?? 0
  for (const record of applied) {
    if (record.version > newestFile) {
      refuseIncompatible(record, release)
      continue
    }
    const file = files.find(({ version }) => version === record.version)
    if (file === undefined) {
      throw new MigrationError('migration_missing', `${record.name} was applied but has no file`)
    }
    if (file.checksum !== record.checksum) {
      throw new MigrationError(
        'migration_changed',
        `${file.name} was edited after it had been applied; restore it and add a new migration`,
      )
    }
  }
  const done = new Set(applied.map(({ version }) => version))
  const pending = files.filter(({ version }) => !done.has(version) && version <= versionMax)
  const late = pending.find(({ version }) => version < newestApplied)
  if (late !== undefined) {
    throw new MigrationError(
      'migration_out_of_order',
      `${late.name} has a lower number than migration ${newestApplied}, which is already applied: give it a higher one`,
    )
  }
  return pending
}

function refuseIncompatible({ name, worksWith }: AppliedMigration, release: number): void {
  if (worksWith !== null && release >= worksWith) return
  const reason =
    worksWith === null
      ? 'names no older release that works with it'
      : `works with release ${worksWith} and newer releases`
  throw new MigrationError(
    'schema_newer',
    `the database has ${name}, which ${reason}; this is release ${release}: start a newer release`,
  )
}

/** Functions stay callable for nodes of the previous release, but not for older ones. */
const releasesBetweenMax = 1

/** The function files to apply: all of them or none. An older node does not replace the functions of a newer
 * release, so a rolling upgrade does not alternate between two sets. */
export function decideFunctions(
  files: MigrationFiles,
  applied: AppliedState,
  versionMax = Number.POSITIVE_INFINITY,
): readonly FunctionFile[] {
  const set = files.functions
  if (set === undefined || versionMax < (files.migrations.at(-1)?.version ?? 0)) return []
  const stored = applied.functions
  if (stored !== undefined && stored.version > set.version + releasesBetweenMax) {
    throw new MigrationError(
      'schema_newer',
      `the database has the functions of release ${stored.version}, which work with releases ${stored.version - releasesBetweenMax} and ${stored.version}; this is release ${set.version}: start one of those`,
    )
  }
  if (stored === undefined || set.version > stored.version) return set.files
  return set.version === stored.version && set.checksum !== stored.checksum ? set.files : []
}
