import { readFileSync } from 'node:fs'
import { isDeepStrictEqual } from 'node:util'
import type { Command } from 'commander'
import { type Api, type Json, segment } from '../api.ts'
import { CliError } from '../cli-error.ts'
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
      const changes = []
      for (const one of wanted) {
        const changed = await changesOf(api, one)
        if (options.dryRun !== true) await api.post('/api/v1/configure', one)
        changes.push({ queue: one.queue, changed })
      }
      if (!output.isHuman) return output.json({ dryRun: options.dryRun === true, queues: changes })
      for (const { queue, changed } of changes) {
        const names = Object.entries(changed).map(([name, { from, to }]) => {
          return `${name} ${JSON.stringify(from) ?? '–'} → ${JSON.stringify(to)}`
        })
        output.line(`${queue}: ${names.join(', ') || 'unchanged'}`)
      }
    })
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

/** The options of the queue that differ from the file; all options if the queue does not exist. */
async function changesOf(
  api: Api,
  { queue, options = {} }: WantedQueue,
): Promise<Record<string, { from: unknown; to: unknown }>> {
  const before = await api.get(`/api/v1/resources/queues/${segment(queue)}`).then(
    ({ body }) => body.options as Record<string, unknown>,
    (error: unknown) => {
      if (error instanceof CliError && error.code === 'server') return {} as Record<string, unknown>
      throw error
    },
  )
  const different = Object.entries(options).filter(
    ([name, to]) => !isDeepStrictEqual(before[name], to),
  )
  return Object.fromEntries(different.map(([name, to]) => [name, { from: before[name], to }]))
}
