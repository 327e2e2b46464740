import type { Command } from 'commander'
import colors from 'picocolors'
import { CliError } from '../../cli-error.ts'
import { databaseUrl, listenUrl } from '../../config.ts'
import { widthDefault } from '../../screen/table.ts'
import { wrap } from '../../screen/wrap.ts'
import { sessionOf, verb } from '../../verb.ts'
import type { Finding } from './doctor-checks/finding.ts'
import { checkMachine } from './doctor-checks/machine-checks.ts'

interface Options {
  readonly databaseUrl?: string
  readonly listenUrl?: string
}

const marks = {
  ok: colors.green('ok  '),
  warning: colors.yellow('warn'),
  problem: colors.red('bad '),
}

export function doctorVerb(program: Command): void {
  verb(
    program,
    'doctor',
    'find problems and say how to fix them',
    `rouse doctor
ROUSE_DATABASE_URL=postgres://… rouse doctor`,
  )
    .option('--database-url <url>', 'also check the database (ROUSE_DATABASE_URL)')
    .option(
      '--listen-url <url>',
      'direct address for LISTEN, if the database is behind a pooler (ROUSE_LISTEN_URL)',
    )
    .action(async (_options: Options, command: Command) => {
      const { api, output, options } = sessionOf<Options>(command)
      // Loaded here, because no other verb needs the database driver.
      const { checkDatabase } = await import('./doctor-checks/database-checks.ts')
      const { checkNodes, readNodes } = await import('./doctor-checks/node-checks.ts')
      const findings = withoutRepeats([
        ...(await checkNodes(api)),
        ...(await checkDatabase(
          options.databaseUrl ?? databaseUrl,
          options.listenUrl ?? listenUrl,
          await readNodes(api),
        )),
        ...checkMachine(),
      ])
      if (!output.isHuman) output.json(findings)
      else {
        for (const { state, what, fix } of findings) {
          output.line(`${marks[state]} ${indented(what, output.width)}`)
          if (fix !== undefined) output.line(`     ${indented(fix, output.width)}`)
        }
      }
      const problems = findings.filter(({ state }) => state === 'problem').length
      if (problems > 0)
        throw new CliError('failed', `${problems} problem${problems === 1 ? '' : 's'} found`)
    })
}

const indent = 5

function indented(text: string, screenWidth = widthDefault): string {
  return wrap(text, screenWidth - indent).join(`\n${' '.repeat(indent)}`)
}

/** Nodes and the database report some problems in the same words. */
function withoutRepeats(findings: readonly Finding[]): Finding[] {
  return findings.filter(({ what }, i) => findings.findIndex((one) => one.what === what) === i)
}
