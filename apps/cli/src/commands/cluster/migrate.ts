import type { MigrationWait } from '@rouse/database'
import type { Pool } from '@rouse/storage'
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
      // Not a default of the option: help would print it, with its password.
      const url = options.databaseUrl ?? migrateUrl
      if (url === undefined) {
        throw new CliError('usage', 'no database given: set ROUSE_DATABASE_URL or --database-url')
      }
      const { createPool, describeMigrationWait, migrate } = await import('@rouse/database')
      const dryRun = options.dryRun === true
      let waited = ''
      const pool = createPool({ url, max: 2, applicationName: 'rouse migrate' })
      const onWait = (wait: MigrationWait) => {
        waited = `; ${describeMigrationWait(wait)}`
      }
      try {
        const { applied, functions } = await migrate({ pool, dryRun, onWait })
        const granted = await grantNewRoles(pool, dryRun)
        if (!output.isHuman) return output.json({ dryRun, applied, functions, granted })
        for (const name of applied) output.line(`${dryRun ? 'would apply' : 'applied'}  ${name}`)
        if (functions.length > 0)
          output.line(`${dryRun ? 'would apply' : 'applied'}  ${functions.length} function files`)
        for (const role of granted)
          output.line(`${dryRun ? 'would give' : 'gave'} the role ${role} its privileges`)
        if (applied.length + functions.length + granted.length === 0)
          output.line('nothing to do: the schema is up to date')
      } catch (error) {
        throw new CliError('server', `${(error as Error).message}${waited}`)
      } finally {
        await pool.end()
      }
    })
}

/** An administrator may have created the roles after the first migration, because its login may not create roles. */
async function grantNewRoles(pool: Pool, dryRun: boolean): Promise<string[]> {
  const { grantRoles, rolesWithoutPrivileges } = await import('@rouse/storage')
  const roles = await rolesWithoutPrivileges(pool)
  if (roles.length > 0 && !dryRun) await grantRoles(pool)
  return roles
}
