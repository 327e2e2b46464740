import { CommanderError } from 'commander'
import { CliError, exitCodes } from './cli-error.ts'
import { createProgram } from './program.ts'
import { receiptsLast } from './receipt-args.ts'

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
