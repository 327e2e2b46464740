import type { Command } from 'commander'
import { Api } from './api.ts'
import { type GlobalOptions, tokenOf, urlOf } from './config.ts'
import { createOutput, type Output } from './output.ts'

/** The dependencies of every verb. */
export interface VerbSession<Options> {
  readonly api: Api
  readonly output: Output
  readonly options: Options & GlobalOptions
}

/** Every verb has a description and an example. */
export function verb(parent: Command, name: string, description: string, example: string): Command {
  return parent
    .command(name)
    .description(description)
    .addHelpText('after', `\nExample:\n  $ ${example.split('\n').join('\n  $ ')}`)
}

export function sessionOf<Options>(command: Command): VerbSession<Options> {
  const options = command.optsWithGlobals<Options & GlobalOptions>()
  return { api: new Api(urlOf(options), tokenOf(options)), output: createOutput(options), options }
}

/**
 * Like `verb`, for what a verb does without a subcommand: `rouse queues` is `rouse queues list`. Words that are
 * neither a subcommand nor an argument are refused with a suggestion.
 */
export function defaultVerb(
  parent: Command,
  name: string,
  description: string,
  example: string,
): Command {
  return parent
    .command(name, { isDefault: true })
    .description(description)
    .allowExcessArguments()
    .hook('preAction', (command) => refuseSurplus(parent, command))
    .addHelpText('after', `\nExample:\n  $ ${example.split('\n').join('\n  $ ')}`)
}

function refuseSurplus(parent: Command, command: Command): void {
  if (command.args.length <= command.registeredArguments.length) return
  if (parent.args[0] === command.name()) command.error('error: too many arguments')
  // Commander has the message and the suggestion for it, but not in its types.
  const refusing = parent as Command & { unknownCommand: () => never }
  refusing.unknownCommand()
}
