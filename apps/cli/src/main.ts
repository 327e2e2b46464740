// The entry point of `rouse VERB`.
import { run } from './run.ts'

// The reader may close the pipe early (`| head`), which is not an error.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code === 'EPIPE') process.exit(0)
  throw error
})

// While this program runs, everyone on the machine can read its arguments.
if (process.argv.some((word) => /^--(token|database-url|listen-url)(=|$)/.test(word))) {
  process.title = 'rouse'
}

const code = await run(process.argv)
// A node that `serve` has started sets its own code when it stops.
if (code !== 0) process.exitCode = code
