/** The connection was lost under COMMIT: the transaction may or may not have happened. */
export class OutcomeUnknownError extends Error {
  readonly code = 'outcome_unknown'

  constructor(cause: unknown) {
    super('the connection was lost while committing; the outcome is unknown', { cause })
    this.name = 'OutcomeUnknownError'
  }
}
