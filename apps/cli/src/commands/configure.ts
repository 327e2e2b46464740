import type { Command } from 'commander'
import { CliError } from '../cli-error.ts'
import { changesLine, changesOf } from '../option-changes.ts'
import { sessionOf, verb } from '../verb.ts'

interface Options {
  readonly namespace?: string
  readonly task?: string
}

export function configureVerb(program: Command): void {
  verb(
    program,
    'configure',
    'create a queue, or change options of one',
    `rouse configure orders retryLimit=5 onFailure=skip
rouse configure orders 'rate={"limit": 100, "perMs": 1000}' leaseTime=null`,
  )
    .argument('<queue>')
    .argument('[option=value...]', 'values are JSON or plain words; null is the default')
    .option('--namespace <name>', 'namespace of the queue')
    .option('--task <name>', 'task of the queue')
    .action(
      async (queue: string, pairs: readonly string[], _options: Options, command: Command) => {
        const { api, output, options } = sessionOf<Options>(command)
        const wanted = Object.fromEntries(pairs.map(readPair))
        const changed = await changesOf(api, queue, wanted)
        const { namespace, task } = options
        const { body } = await api.post('/api/v1/configure', {
          queue,
          ...(namespace === undefined ? {} : { namespace }),
          ...(task === undefined ? {} : { task }),
          options: wanted,
        })
        if (!output.isHuman) return output.json(body)
        output.line(changesLine(queue, changed))
      },
    )
}

function readPair(pair: string): [string, unknown] {
  const at = pair.indexOf('=')
  if (at < 1) throw new CliError('usage', `${JSON.stringify(pair)}: write option=value`)
  return [pair.slice(0, at), readValue(pair.slice(at + 1))]
}

/** `5`, `true`, `null` and `{"limit": 1}` are JSON, `skip` is a word. */
function readValue(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return text
  }
}
