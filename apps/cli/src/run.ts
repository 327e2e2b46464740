import { CommanderError } from 'commander'
import { CliError, exitCodes } from './cli-error.ts'
import { createProgram } from './program.ts'

/** Runs one command line and returns its exit code. Data goes to standard output, everything else to standard error. */
export async function run(argv: readonly string[]): Promise<number> {
  try {
    await createProgram().parseAsync(receiptsLast(argv))
    return 0
  } catch (error) {
    if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : exitCodes.usage
    if (!(error instanceof CliError)) throw error
    if (error.message !== '') process.stderr.write(`rouse: ${error.message}\n`)
    return exitCodes[error.code]
  }
}

const receipt = /^-[A-Za-z0-9_-]{47}$/

/**
 * Moves receipts that begin with a dash behind `--`. Receipts are 48 characters of base64url, so one in 64
 * begins with a dash and would be parsed as flags.
 */
function receiptsLast(argv: readonly string[]): readonly string[] {
  if (argv.includes('--') || !argv.some((word) => receipt.test(word))) return argv
  return [
    ...argv.filter((word) => !receipt.test(word)),
    '--',
    ...argv.filter((word) => receipt.test(word)),
  ]
}
