import { readFileSync } from 'node:fs'
import type { Command } from 'commander'
import type { Api, Json } from '../api.ts'
import { CliError } from '../cli-error.ts'
import { changesLine, changesOf } from '../option-changes.ts'
import { sessionOf, verb } from '../verb.ts'

interface Options {
  readonly file: string
  readonly dryRun?: boolean
}

interface WantedQueue {
  readonly queue: string
  readonly namespace?: string
  readonly task?: string
  readonly options?: Readonly<Record<string, unknown>>
}

export function applyVerb(program: Command): void {
  verb(
    program,
    'apply',
    'create or change queues from a YAML or JSON file',
    `rouse apply -f queues.yaml --dry-run`,
  )
    .requiredOption(
      '-f, --file <file>',
      '{queues: [{queue, namespace?, task?, options?}]}; - is standard input',
    )
    .option('--dry-run', 'show what would change')
    .action(async (_options: Options, command: Command) => {
      const { api, output, options } = sessionOf<Options>(command)
      const wanted = await readQueues(options.file)
      // Everything is checked before anything is changed.
      await configureAll(wanted, api, { dryRun: true })
      const changes = []
      for (const one of wanted) {
        changes.push({
          queue: one.queue,
          changed: await changesOf(api, one.queue, one.options ?? {}),
        })
      }
      if (options.dryRun !== true) await configureAll(wanted, api, {})
      if (!output.isHuman) return output.json({ dryRun: options.dryRun === true, queues: changes })
      for (const { queue, changed } of changes) output.line(changesLine(queue, changed))
    })
}

/** Says which queue was refused, and which ones were changed before it. */
async function configureAll(
  wanted: readonly WantedQueue[],
  api: Api,
  more: { readonly dryRun?: true },
): Promise<void> {
  for (const [i, one] of wanted.entries()) {
    await api.post('/api/v1/configure', { ...one, ...more }).catch((error: unknown) => {
      if (!(error instanceof CliError)) throw error
      const done = more.dryRun ? [] : wanted.slice(0, i).map(({ queue }) => queue)
      const state =
        done.length === 0 ? 'nothing was changed' : `already changed: ${done.join(', ')}`
      throw new CliError(error.code, `${one.queue}: ${error.message}; ${state}`)
    })
  }
}

async function readQueues(file: string): Promise<readonly WantedQueue[]> {
  const { parse } = await import('yaml')
  let document: Json
  try {
    document = parse(readFileSync(file === '-' ? 0 : file, 'utf8'))
  } catch (error) {
    throw new CliError('usage', `${file}: ${(error as Error).message}`)
  }
  const queues: unknown = document?.queues
  if (!Array.isArray(queues) || queues.some((one) => typeof one?.queue !== 'string')) {
    throw new CliError('usage', `${file} must contain {queues: [{queue, options}]}`)
  }
  return queues as readonly WantedQueue[]
}
