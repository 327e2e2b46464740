// The entry point of `rouse VERB`.
import { exitCodes } from './cli-error.ts'
import { run } from './run.ts'

// The reader may close the pipe early (`| head`), which is not an error.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code === 'EPIPE') process.exit(0)
  process.stderr.write(
    `rouse: standard output cannot be written (${error.code ?? error.message})\n`,
  )
  process.exit(exitCodes.server)
})

// While this program runs, everyone on the machine can read its arguments.
if (process.argv.some((word) => /^--(token|database-url|listen-url)(=|$)/.test(word))) {
  process.title = 'rouse'
}

// As process 1 of a container, signals without a handler are ignored: Ctrl-C would not end a waiting verb. Verbs with a
// handler of their own, such as `serve`, end themselves.
if (process.pid === 1) {
  for (const [signal, exitCode] of Object.entries({ SIGINT: 130, SIGTERM: 143, SIGHUP: 129 })) {
    process.on(signal, () => {
      if (process.listenerCount(signal) === 1) process.exit(exitCode)
    })
  }
}

const code = await run(process.argv)
// A node that `serve` has started sets its own code when it stops.
if (code !== 0) process.exitCode = code
