export type DatabaseHostErrorCode =
  /** The address cannot be understood. */
  | 'bad_target'
  /** This server is a standby, or was told to be read-only. */
  | 'read_only_server'
  /** None of the hosts takes writes just now. */
  | 'no_writable_server'

/** Why no server was to be had. Nothing was sent to any. Callers branch on `code`. */
export class DatabaseHostError extends Error {
  readonly code: DatabaseHostErrorCode

  constructor(code: DatabaseHostErrorCode, message: string, options?: ErrorOptions) {
    super(message, options)
    this.name = 'DatabaseHostError'
    this.code = code
  }
}
