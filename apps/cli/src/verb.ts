import type { Command } from 'commander'
import { Api } from './api.ts'
import { type GlobalOptions, tokenOf } from './config.ts'
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
  return { api: new Api(options.url, tokenOf(options)), output: createOutput(options), options }
}
