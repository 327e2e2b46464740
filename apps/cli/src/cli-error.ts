/** What a shell can branch on. `rouse --help` lists them. */
export const exitCodes = {
  usage: 1,
  server: 2,
  unreachable: 2,
  nothing: 4,
  failed: 5,
} as const

/** Ends the program with one line for a person, and a code for a script. */
export class CliError extends Error {
  readonly code: keyof typeof exitCodes

  constructor(code: keyof typeof exitCodes, message: string) {
    super(message)
    this.name = 'CliError'
    this.code = code
  }
}
