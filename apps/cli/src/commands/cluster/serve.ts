import cluster from 'node:cluster'
import { fileURLToPath } from 'node:url'
import type { Command } from 'commander'
import { verb } from '../../verb.ts'

export function serveVerb(program: Command): void {
  verb(
    program,
    'serve',
    'run one node, configured by ROUSE_* or flags',
    `ROUSE_DATABASE_URL=postgres://… rouse serve
rouse serve --port 4700 --workers 4
rouse serve --check-config
rouse serve --help`,
  )
    .allowUnknownOption()
    .helpOption(false)
    .usage('[--SETTING=VALUE...] [--check-config] [--help]')
    .argument('[settings...]', 'flags; --help lists them, docs/settings.md explains them')
    .action(async (flags: readonly string[], _options: object, command: Command) => {
      if (flags.some((flag) => flag === '--help' || flag === '-h')) return printHelp(command)
      // Workers also run the broker's own entry point, so that they do not load the command line.
      const main = fileURLToPath(import.meta.resolve('@rouse/broker/main'))
      process.argv.splice(1, process.argv.length, main, ...flags)
      cluster.setupPrimary({ exec: main, args: [...flags] })
      await import('@rouse/broker/main')
    })
}

/** Commander does not know the settings, which are those of the broker. */
async function printHelp(command: Command): Promise<void> {
  const { describeSettings } = await import('@rouse/broker')
  command.outputHelp()
  const rows = describeSettings()
  const widest = Math.max(...rows.map(({ flag }) => flag.length))
  process.stdout.write('\nSettings, as a flag, in the environment, and their defaults:\n')
  for (const { flag, env, fallback } of rows) {
    const value = fallback === undefined ? '' : `  ${fallback}`
    process.stdout.write(`  ${flag.padEnd(widest)}  ${env}${value}\n`)
  }
}
