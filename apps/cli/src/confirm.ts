// Asks before something is deleted or moved. The question names the server: a wrong ROUSE_URL is the most
// expensive mistake.
import { createInterface } from 'node:readline'
import type { Command } from 'commander'
import { CliError } from './cli-error.ts'

export interface ConfirmOptions {
  readonly yes?: boolean
}

export function withConfirmation(command: Command): Command {
  return command.option('-y, --yes', 'do not ask; needed where there is no terminal to ask on')
}

/** `act` is what happens, such as `delete queue "orders"`. */
export async function confirm(
  act: string,
  server: { readonly url: string },
  { yes }: ConfirmOptions,
): Promise<void> {
  if (yes === true) return
  const what = `${act} on ${server.url}`
  if (!process.stdin.isTTY || !process.stderr.isTTY) {
    throw new CliError('usage', `this would ${what}; add --yes to do it`)
  }
  const answer = await ask(`${what.slice(0, 1).toUpperCase()}${what.slice(1)}? [y/N] `)
  if (!/^y(es)?$/i.test(answer.trim())) throw new CliError('declined', 'nothing was changed')
}

/** Ctrl-C, Ctrl-D and the end of the input are a no. */
function ask(question: string): Promise<string> {
  const lines = createInterface({ input: process.stdin, output: process.stderr })
  return new Promise((resolve) => {
    lines.once('close', () => resolve(''))
    lines.once('SIGINT', () => {
      process.stderr.write('\n')
      lines.close()
    })
    lines.question(question, (answer) => {
      resolve(answer)
      lines.close()
    })
  })
}
