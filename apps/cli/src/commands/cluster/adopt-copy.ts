import type { Pool } from '@rouse/storage'
import type { Command } from 'commander'
import { CliError } from '../../cli-error.ts'
import { databaseUrl } from '../../config.ts'
import { sessionOf, verb } from '../../verb.ts'

interface Options {
  readonly dryRun?: boolean
  readonly databaseUrl?: string
}

export function adoptCopyVerb(program: Command): void {
  verb(
    program,
    'adopt-copy',
    'start the schedules and redrives of a restored copy, as a cluster of its own',
    `rouse adopt-copy --dry-run
ROUSE_DATABASE_URL=postgres://… rouse adopt-copy`,
  )
    .option('--dry-run', 'show what would start')
    .option('--database-url <url>', 'the database (ROUSE_DATABASE_URL)')
    .action(async (_options: Options, command: Command) => {
      const { output, options } = sessionOf<Options>(command)
      // Not a default of the option: help would print it, with its password.
      const url = options.databaseUrl ?? databaseUrl
      if (url === undefined) {
        throw new CliError('usage', 'no database given: set ROUSE_DATABASE_URL or --database-url')
      }
      const dryRun = options.dryRun === true
      const { copyOf, schedules, redrives, clusterId } = await adopt(url, dryRun)
      if (!output.isHuman) {
        return output.json({ dryRun, copyOf: copyOf ?? null, clusterId, schedules, redrives })
      }
      if (copyOf === undefined) return output.line('nothing to do: this database is not a copy')
      for (const name of schedules)
        output.line(`${dryRun ? 'would start' : 'started'}  schedule ${name}`)
      if (redrives > 0) output.line(`${dryRun ? 'would start' : 'started'}  ${redrives} redrives`)
      output.line(
        dryRun
          ? `a copy of database "${copyOf.database}"`
          : `this database is the cluster ${clusterId} now, and no longer a copy of "${copyOf.database}"`,
      )
    })
}

async function adopt(url: string, dryRun: boolean) {
  const { createPool } = await import('@rouse/database')
  const { adoptCopy, readCopyState } = await import('@rouse/storage')
  let pool: Pool | undefined
  try {
    pool = createPool({ url, max: 1, applicationName: 'rouse adopt-copy' })
    const { copyOf, ...state } = await readCopyState(pool)
    const adopted = dryRun ? undefined : await adoptCopy(pool)
    return { ...state, copyOf, clusterId: adopted?.clusterId ?? null }
  } catch (error) {
    throw new CliError('server', `the copy was not adopted: ${(error as Error).message}`)
  } finally {
    await pool?.end()
  }
}
