import type { Command } from 'commander'
import colors from 'picocolors'
import { CliError } from '../cli-error.ts'
import { databaseUrl, listenUrl } from '../config.ts'
import { checkDatabase } from '../doctor/database-checks.ts'
import type { Finding } from '../doctor/finding.ts'
import { checkMachine } from '../doctor/machine-checks.ts'
import { checkNodes, readNodes } from '../doctor/node-checks.ts'
import { sessionOf, verb } from '../verb.ts'

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
    .option('--database-url <url>', 'also check the database (ROUSE_DATABASE_URL)', databaseUrl)
    .option(
      '--listen-url <url>',
      'direct address for LISTEN, if the database is behind a pooler (ROUSE_LISTEN_URL)',
      listenUrl,
    )
    .action(async (_options: Options, command: Command) => {
      const { api, output, options } = sessionOf<Options>(command)
      const findings = withoutRepeats([
        ...(await checkNodes(api)),
        ...(await checkDatabase(options.databaseUrl, options.listenUrl, await readNodes(api))),
        ...checkMachine(),
      ])
      if (!output.isHuman) output.json(findings)
      else {
        for (const { state, what, fix } of findings) {
          output.line(`${marks[state]} ${what}`)
          if (fix !== undefined) output.line(`     ${fix}`)
        }
      }
      const problems = findings.filter(({ state }) => state === 'problem').length
      if (problems > 0)
        throw new CliError('failed', `${problems} problem${problems === 1 ? '' : 's'} found`)
    })
}

/** Nodes and the database report some problems in the same words. */
function withoutRepeats(findings: readonly Finding[]): Finding[] {
  return findings.filter(({ what }, i) => findings.findIndex((one) => one.what === what) === i)
}
