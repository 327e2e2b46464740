import cluster from 'node:cluster'
import { fileURLToPath } from 'node:url'
import type { Command } from 'commander'
import { verb } from '../verb.ts'

export function serveVerb(program: Command): void {
  verb(
    program,
    'serve',
    'run one node; settings by ROUSE_* or flags',
    `ROUSE_DATABASE_URL=postgres://… rouse serve
rouse serve --check-config`,
  )
    .allowUnknownOption()
    .helpOption(false)
    .argument('[flags...]', 'as apps/broker/src/config/settings.ts lists them')
    .action(async (flags: readonly string[]) => {
      // The node runs as itself: its workers too, and nothing of the command line is in their way.
      const main = fileURLToPath(import.meta.resolve('@rouse/broker/main'))
      process.argv.splice(1, process.argv.length, main, ...flags)
      cluster.setupPrimary({ exec: main, args: [...flags] })
      await import('@rouse/broker/main')
    })
}
