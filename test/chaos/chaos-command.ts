// `npm run chaos -- …`: runs a cluster under load and faults, and prints the result in the last line. Exit
// code 0 means the expected result: no rule is broken, or with `--bugs` every bug is caught, or with
// `--control` messages are lost. Exit code 1 means any other result, 2 an invalid command.
import { randomInt } from 'node:crypto'
import { runBug, runBugs } from './bugs/run-bugs.ts'
import { type Command, readCommand, UsageError } from './run/command-line.ts'
import { runChaos } from './run/run.ts'

const quietEverySeconds = 10
let progressed = 0

// Exits explicitly, because a process or socket that a fault left behind could keep this process alive.
process.exit(await main(process.argv.slice(2)))

async function main(args: readonly string[]): Promise<number> {
  let command: Command
  try {
    command = readCommand(args, () => randomInt(2 ** 31))
  } catch (error) {
    if (!(error instanceof UsageError)) throw error
    process.stderr.write(`chaos: ${error.message}\n`)
    return 2
  }
  switch (command.kind) {
    case 'bugs': {
      const options = { seed: command.seed, keep: command.keep, print, progress }
      if (command.name === undefined) return (await runBugs(options)) ? 0 : 1
      return (await runBug(command.name, options)) ? 0 : 1
    }
    case 'control': {
      const { rules } = await runChaos({ ...command.run, ...command, print, progress })
      const lost = rules.find(({ rule }) => rule === 'lost')?.count ?? 0
      print(
        lost > 0
          ? `control: ${lost} messages lost, as expected`
          : 'control: no message was lost, so the power-loss test cannot detect loss',
      )
      return lost > 0 ? 0 : 1
    }
    case 'run':
      return (await runChaos({ ...command.run, ...command, print, progress })).ok ? 0 : 1
  }
}

/** Overwrites one line on a terminal; elsewhere prints a line every ten seconds. */
function progress(line: string): void {
  if (process.stdout.isTTY) process.stdout.write(`\r\x1b[K${line}`)
  else if (progressed++ % quietEverySeconds === 0) process.stdout.write(`${line}\n`)
}

function print(line: string): void {
  process.stdout.write(`${process.stdout.isTTY ? '\r\x1b[K' : ''}${line}\n`)
}
