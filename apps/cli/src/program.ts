import { Command } from 'commander'
import { ackVerb } from './commands/ack.ts'
import { applyVerb } from './commands/apply.ts'
import { benchVerb } from './commands/bench.ts'
import { completionVerb } from './commands/completion.ts'
import { devVerb } from './commands/dev.ts'
import { dlqVerb } from './commands/dlq.ts'
import { doctorVerb } from './commands/doctor.ts'
import { groupsVerb } from './commands/groups.ts'
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

/** In the order of `rouse --help`: run it, use it, look at it, keep it well. */
// biome-ignore format: one line a purpose
const verbs = [
  devVerb, serveVerb,
  pushVerb, popVerb, ackVerb, tailVerb,
  queuesVerb, messagesVerb, dlqVerb, groupsVerb, nodesVerb, statsVerb, whyVerb, topVerb,
  benchVerb, doctorVerb, migrateVerb, applyVerb, completionVerb,
]

export function createProgram(): Command {
  const program = new Command('rouse')
    .description('A clustered message queue on PostgreSQL.')
    .option('-u, --url <url>', 'a node, or the balancer before them (ROUSE_URL)', defaultUrl)
    .option('--json', 'compact JSON, also on a terminal')
    .showHelpAfterError('(--help shows how it is used)')
    .showSuggestionAfterError()
    .exitOverride()
    .addHelpText(
      'after',
      `
A table on a terminal, JSON in a pipe.
Exit codes: 0 done · 1 wrong usage · 2 the server refused or is out of reach · 4 there was nothing · 5 a check failed`,
    )
  for (const add of verbs) add(program)
  for (const command of program.commands)
    command.exitOverride().showHelpAfterError('(--help shows how it is used)')
  return program
}
