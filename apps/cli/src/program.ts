import { Command } from 'commander'
import { ackVerb } from './commands/ack.ts'
import { adoptCopyVerb } from './commands/adopt-copy.ts'
import { applyVerb } from './commands/apply.ts'
import { auditVerb } from './commands/audit.ts'
import { benchVerb } from './commands/bench.ts'
import { completionVerb } from './commands/completion.ts'
import { devVerb } from './commands/dev.ts'
import { dlqVerb } from './commands/dlq.ts'
import { doctorVerb } from './commands/doctor.ts'
import { groupsVerb } from './commands/groups.ts'
import { keysVerb } from './commands/keys.ts'
import { messagesVerb } from './commands/messages.ts'
import { migrateVerb } from './commands/migrate.ts'
import { nodesVerb } from './commands/nodes.ts'
import { popVerb } from './commands/pop.ts'
import { pushVerb } from './commands/push.ts'
import { queuesVerb } from './commands/queues.ts'
import { serveVerb } from './commands/serve.ts'
import { statsVerb } from './commands/stats.ts'
import { tailVerb } from './commands/tail.ts'
import { topVerb } from './commands/top.ts'
import { whyVerb } from './commands/why.ts'
import { defaultUrl } from './config.ts'
import { version } from './version.ts'

/** In the order of `rouse --help`: run, use, inspect, maintain. */
// biome-ignore format: one line per purpose
const verbs = [
  devVerb, serveVerb,
  pushVerb, popVerb, ackVerb, tailVerb,
  queuesVerb, messagesVerb, dlqVerb, groupsVerb, nodesVerb, statsVerb, whyVerb, topVerb,
  keysVerb, auditVerb, benchVerb, doctorVerb, migrateVerb, adoptCopyVerb, applyVerb, completionVerb,
]

export function createProgram(): Command {
  const program = new Command('rouse')
    .description('A clustered message queue on PostgreSQL.')
    .version(version, '-V, --version', 'print the version')
    .option('-u, --url <url>', 'URL of a node or of the balancer (ROUSE_URL)', defaultUrl)
    .option('--token <key>', 'API key (ROUSE_TOKEN, ROUSE_TOKEN_FILE)')
    .option('--json', 'print compact JSON, also on a terminal')
    .showHelpAfterError('(use --help for usage)')
    .showSuggestionAfterError()
    .exitOverride()
    .addHelpText(
      'after',
      `
Prints a table on a terminal, JSON in a pipe.
Exit codes: 0 success · 1 wrong usage · 2 server error or unreachable · 4 no messages · 5 a check failed`,
    )
  for (const add of verbs) add(program)
  for (const command of program.commands)
    command.exitOverride().showHelpAfterError('(use --help for usage)')
  return program
}
