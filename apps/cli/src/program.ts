import { Command, Help } from 'commander'
import { auditVerb } from './commands/access/audit.ts'
import { keysVerb } from './commands/access/keys.ts'
import { ackVerb } from './commands/ack.ts'
import { applyVerb } from './commands/apply.ts'
import { adoptCopyVerb } from './commands/cluster/adopt-copy.ts'
import { benchVerb } from './commands/cluster/bench.ts'
import { devVerb } from './commands/cluster/dev.ts'
import { doctorVerb } from './commands/cluster/doctor.ts'
import { migrateVerb } from './commands/cluster/migrate.ts'
import { nodesVerb } from './commands/cluster/nodes.ts'
import { serveVerb } from './commands/cluster/serve.ts'
import { statsVerb } from './commands/cluster/stats.ts'
import { completeVerb, completionVerb } from './commands/completion.ts'
import { configureVerb } from './commands/configure.ts'
import { dlqVerb } from './commands/dlq.ts'
import { groupsVerb } from './commands/groups.ts'
import { leaseVerbs } from './commands/lease.ts'
import { messagesVerb } from './commands/messages.ts'
import { popVerb } from './commands/pop.ts'
import { pushVerb } from './commands/push.ts'
import { pauseVerbs, queuesVerb } from './commands/queues.ts'
import { schedulesVerb } from './commands/schedules.ts'
import { tailVerb } from './commands/tail.ts'
import { topVerb } from './commands/top.ts'
import { whyVerb } from './commands/why.ts'
import { version } from './version.ts'

/** In the order of `rouse --help`. */
// biome-ignore format: one line per purpose
const verbs = [
  ['Run:', [devVerb, serveVerb]],
  ['Push and consume:', [pushVerb, popVerb, ackVerb, leaseVerbs, tailVerb]],
  ['Look and manage:', [topVerb, whyVerb, queuesVerb, configureVerb, pauseVerbs, messagesVerb, dlqVerb, groupsVerb, schedulesVerb, applyVerb]],
  ['The cluster:', [nodesVerb, statsVerb, doctorVerb, benchVerb, keysVerb, auditVerb, migrateVerb, adoptCopyVerb]],
  ['This program:', [completionVerb, completeVerb]],
] as const

export function createProgram(): Command {
  const program = new Command('rouse')
    .description('A clustered message queue on PostgreSQL.')
    .version(version, '-V, --version', 'print the version')
    .option(
      '-u, --url <url>',
      'URL of a node or of the balancer (ROUSE_URL, else http://127.0.0.1:4600)',
    )
    .option('--token <key>', 'API key (ROUSE_TOKEN, ROUSE_TOKEN_FILE)')
    .option('--json', 'print compact JSON, also on a terminal')
    .showHelpAfterError('(use --help for usage)')
    .showSuggestionAfterError()
    .configureHelp({ showGlobalOptions: true, subcommandTerm })
    .configureOutput({ outputError: (text, write) => write(text.replace(/^error: /, 'rouse: ')) })
    .exitOverride()
    .addHelpText(
      'after',
      `
Prints a table on a terminal, JSON in a pipe. Verbs that delete something ask
first, or need --yes.
Exit codes: 0 success · 1 wrong usage, or a question was not answered with yes
            2 refused by the server, failed there, or no server answers
            4 no messages · 5 a check failed`,
    )
  for (const [heading, group] of verbs) {
    program.commandsGroup(heading)
    for (const add of group) add(program)
  }
  const help = new Command('help').argument('[command]').description('show the help of a verb')
  program.addHelpCommand(help.helpGroup('This program:'))
  return program
}

/** In the list of all verbs only their names, so that it fits a small screen. */
function subcommandTerm(this: Help, command: Command): string {
  const isVerb = command.parent?.parent === null
  return isVerb ? command.name() : Help.prototype.subcommandTerm.call(this, command)
}
