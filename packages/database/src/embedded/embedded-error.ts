export type EmbeddedPostgresErrorCode =
  | 'binaries_missing'
  | 'data_dir_foreign'
  | 'data_dir_in_use'
  | 'data_dir_version'
  | 'init_failed'
  | 'postgres_too_old'
  | 'start_failed'

/** Why the embedded PostgreSQL could not start. Callers branch on `code`. */
export class EmbeddedPostgresError extends Error {
  readonly code: EmbeddedPostgresErrorCode

  constructor(code: EmbeddedPostgresErrorCode, message: string, options?: ErrorOptions) {
    super(message, options)
    this.name = 'EmbeddedPostgresError'
    this.code = code
  }
}
