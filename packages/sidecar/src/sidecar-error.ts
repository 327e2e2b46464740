export type SidecarErrorCode =
  | 'overloaded'
  | 'draining'
  | 'database_unavailable'
  | 'outcome_unknown'
  | 'busy'
  | 'partition_locked'
  | 'refused'
  | 'internal'

/** Why an operation failed. `refused` carries the message of the SQL function. */
export class SidecarError extends Error {
  readonly code: SidecarErrorCode
  /** For `refused`: the SQLSTATE (RS400, RS404, RS409, RS429) and the JSON detail of the SQL function. */
  readonly state: string | undefined
  readonly detail: Readonly<Record<string, unknown>>

  constructor(
    code: SidecarErrorCode,
    message: string,
    options: {
      readonly cause?: unknown
      readonly state?: string | undefined
      readonly detail?: Readonly<Record<string, unknown>>
    } = {},
  ) {
    super(message, { cause: options.cause })
    this.name = 'SidecarError'
    this.code = code
    this.state = options.state
    this.detail = options.detail ?? {}
  }
}
