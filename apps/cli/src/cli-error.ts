/** The exit codes, listed in `rouse --help`. */
export const exitCodes = {
  usage: 1,
  server: 2,
  unreachable: 2,
  nothing: 4,
  failed: 5,
} as const

/** Ends the program with a one-line message and an exit code. */
export class CliError extends Error {
  readonly code: keyof typeof exitCodes

  constructor(code: keyof typeof exitCodes, message: string) {
    super(message)
    this.name = 'CliError'
    this.code = code
  }
}
