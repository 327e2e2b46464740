/** The exit codes, listed in `rouse --help`. */
export const exitCodes = {
  usage: 1,
  declined: 1,
  server: 2,
  unreachable: 2,
  nothing: 4,
  failed: 5,
} as const

/** Ends the program with a one-line message and an exit code. */
export class CliError extends Error {
  readonly code: keyof typeof exitCodes
  /** The HTTP status, if a server answered. */
  readonly status: number | undefined

  constructor(code: keyof typeof exitCodes, message: string, status?: number) {
    super(message)
    this.name = 'CliError'
    this.code = code
    this.status = status
  }
}
