// The entry point of `rouse VERB`. Data goes to standard output, everything else to standard error.
import { CommanderError } from 'commander'
import { CliError, exitCodes } from './cli-error.ts'
import { createProgram } from './program.ts'
import { receiptsLast } from './receipt-args.ts'

// The reader may close the pipe early (`| head`), which is not an error.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code === 'EPIPE') process.exit(0)
  throw error
})

try {
  await createProgram().parseAsync(receiptsLast(process.argv))
} catch (error) {
  process.exitCode = report(error)
}

function report(error: unknown): number {
  if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : exitCodes.usage
  if (!(error instanceof CliError)) throw error
  if (error.message !== '') process.stderr.write(`rouse: ${error.message}\n`)
  return exitCodes[error.code]
}
