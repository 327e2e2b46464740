// `npm run chaos -- …`: breaks a cluster under load and says in its last line what came of it. Exit codes: 0 all rules held,
// 1 one of them fired, 2 the command was not understood.
import { randomInt } from 'node:crypto'
import { runBug, runBugs } from './bugs/run-bugs.ts'
import { type Command, readCommand, UsageError } from './run/command-line.ts'
import { runChaos } from './run/run.ts'

const quietEverySeconds = 10
let progressed = 0

// At once: whatever a fault left behind must not keep us, and ends with us.
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
      const options = { seed: command.seed, keep: command.keep, say, progress }
      if (command.name === undefined) return (await runBugs(options)) ? 0 : 1
      return (await runBug(command.name, options)) ? 0 : 1
    }
    case 'control': {
      const { rules } = await runChaos({ ...command.run, ...command, say, progress })
      const lost = rules.find(({ rule }) => rule === 'lost')?.count ?? 0
      say(
        lost > 0
          ? `control: ${lost} lost, as it must be`
          : 'control: nothing was lost: the test of power loss is blind',
      )
      return lost > 0 ? 0 : 1
    }
    case 'run':
      return (await runChaos({ ...command.run, ...command, say, progress })).ok ? 0 : 1
  }
}

/** On a terminal one line that is overwritten; elsewhere a line now and then. */
function progress(line: string): void {
  if (process.stdout.isTTY) process.stdout.write(`\r\x1b[K${line}`)
  else if (progressed++ % quietEverySeconds === 0) process.stdout.write(`${line}\n`)
}

function say(line: string): void {
  process.stdout.write(`${process.stdout.isTTY ? '\r\x1b[K' : ''}${line}\n`)
}
