/** The connection was lost during COMMIT, or the commit was not confirmed: the transaction may or may not
 * have happened. */
export class OutcomeUnknownError extends Error {
  readonly code = 'outcome_unknown'

  constructor(cause: unknown) {
    super('the commit was not confirmed; the outcome is unknown', { cause })
    this.name = 'OutcomeUnknownError'
  }
}
