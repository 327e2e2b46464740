import cluster from 'node:cluster'
import { fileURLToPath } from 'node:url'
import type { Command } from 'commander'
import { verb } from '../verb.ts'

export function serveVerb(program: Command): void {
  verb(
    program,
    'serve',
    'run one node, configured by ROUSE_* or flags',
    `ROUSE_DATABASE_URL=postgres://… rouse serve
rouse serve --check-config`,
  )
    .allowUnknownOption()
    .helpOption(false)
    .argument('[flags...]', 'the settings of apps/broker/src/config/settings.ts')
    .action(async (flags: readonly string[]) => {
      // Workers also run the broker's own entry point, so that they do not load the command line.
      const main = fileURLToPath(import.meta.resolve('@rouse/broker/main'))
      process.argv.splice(1, process.argv.length, main, ...flags)
      cluster.setupPrimary({ exec: main, args: [...flags] })
      await import('@rouse/broker/main')
    })
}
