import type { Command } from 'commander'
import { Api } from './api.ts'
import type { GlobalOptions } from './config.ts'
import { createOutput, type Output } from './output.ts'

/** What every verb works with. */
export interface Session<Options> {
  readonly api: Api
  readonly output: Output
  readonly options: Options & GlobalOptions
}

/** Every verb says what it does and shows how it is used. */
export function verb(parent: Command, name: string, description: string, example: string): Command {
  return parent
    .command(name)
    .description(description)
    .addHelpText('after', `\nExample:\n  $ ${example.split('\n').join('\n  $ ')}`)
}

export function sessionOf<Options>(command: Command): Session<Options> {
  const options = command.optsWithGlobals<Options & GlobalOptions>()
  return { api: new Api(options.url), output: createOutput(options), options }
}
