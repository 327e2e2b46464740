export type DatabaseHostErrorCode =
  /** The address cannot be parsed. */
  | 'bad_target'
  /** This server is a standby, or is configured read-only. */
  | 'read_only_server'
  /** None of the hosts accepts writes at the moment. */
  | 'no_writable_server'

/** Why no server was usable. Nothing was sent to any server. Callers branch on `code`. */
export class DatabaseHostError extends Error {
  readonly code: DatabaseHostErrorCode

  constructor(code: DatabaseHostErrorCode, message: string, options?: ErrorOptions) {
    super(message, options)
    this.name = 'DatabaseHostError'
    this.code = code
  }
}
