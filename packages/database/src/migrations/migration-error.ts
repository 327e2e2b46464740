export type MigrationErrorCode =
  | 'bad_migration_name'
  | 'functions_version_missing'
  | 'migration_changed'
  | 'migration_failed'
  | 'migration_missing'
  | 'migration_out_of_order'
  | 'schema_newer'

/** Why a database could not be migrated to these files. Callers branch on `code`. */
export class MigrationError extends Error {
  readonly code: MigrationErrorCode
  /** The file whose statement failed. */
  readonly file: string | undefined

  constructor(
    code: MigrationErrorCode,
    message: string,
    options: ErrorOptions & { readonly file?: string } = {},
  ) {
    super(message, options)
    this.name = 'MigrationError'
    this.code = code
    this.file = options.file
  }
}
