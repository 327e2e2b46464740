import type { Command } from 'commander'
import { CliError } from '../../cli-error.ts'
import { migrateUrl } from '../../config.ts'
import { sessionOf, verb } from '../../verb.ts'

interface Options {
  readonly dryRun?: boolean
  readonly databaseUrl?: string
}

export function migrateVerb(program: Command): void {
  verb(
    program,
    'migrate',
    'migrate a database to the schema of this version',
    `rouse migrate --dry-run
ROUSE_DATABASE_URL=postgres://… rouse migrate`,
  )
    .option('--dry-run', 'show what would be applied')
    .option('--database-url <url>', 'the database (ROUSE_MIGRATE_URL, else ROUSE_DATABASE_URL)')
    .action(async (_options: Options, command: Command) => {
      const { output, options } = sessionOf<Options>(command)
      // Not the default of the option, which help would print with its password.
      const url = options.databaseUrl ?? migrateUrl
      if (url === undefined) {
        throw new CliError('usage', 'no database given: set ROUSE_DATABASE_URL or --database-url')
      }
      const { describeMigrationWait, migrate } = await import('@rouse/database')
      const dryRun = options.dryRun === true
      let waited = ''
      const { applied, functions } = await migrate({
        url,
        dryRun,
        onWait: (wait) => {
          waited = `; ${describeMigrationWait(wait)}`
        },
      }).catch((error: Error) => {
        throw new CliError('server', `${error.message}${waited}`)
      })
      if (!output.isHuman) return output.json({ dryRun, applied, functions })
      for (const name of [...applied, ...functions])
        output.line(`${dryRun ? 'would apply' : 'applied'}  ${name}`)
      if (applied.length + functions.length === 0)
        output.line('nothing to do: the schema is up to date')
    })
}
