import { readFileSync } from 'node:fs'
import type { Command } from 'commander'
import { CliError } from '../cli-error.ts'
import { parseExact, stringifyExact } from '../exact-json.ts'
import { durationMs } from '../format.ts'
import { sessionOf, verb } from '../verb.ts'

interface Options {
  readonly partition?: string
  readonly delay?: number
  readonly dedupe?: string
  readonly header?: readonly string[]
}

/** Within the default limits of a push: a request may have 4 MiB, and a character takes up to three bytes. */
const itemsMax = 1_000
const requestCharsMax = 1_000_000

export function pushVerb(program: Command): void {
  verb(
    program,
    'push',
    'store a message',
    `rouse push orders '{"id": 42}' --partition customer-7
cat orders.ndjson | rouse push orders -`,
  )
    .argument('<queue>')
    .argument(
      '<json>',
      'the payload; @FILE reads it from a file, - reads one per line from standard input',
    )
    .option('-p, --partition <name>', 'messages of a partition keep their order')
    .option('-d, --delay <duration>', 'deliver the message after this time', durationMs)
    .option('--dedupe <key>', 'a second push with the same key stores nothing')
    .option('-H, --header <name=value>', 'may be repeated', collect)
    .action(async (queue: string, json: string, _options: Options, command: Command) => {
      const { api, output, options } = sessionOf<Options>(command)
      const more = {
        ...(options.partition === undefined ? {} : { partition: options.partition }),
        ...(options.delay === undefined ? {} : { delayMs: options.delay }),
        ...(options.dedupe === undefined ? {} : { transactionId: options.dedupe }),
        ...(options.header === undefined ? {} : { headers: headersOf(options.header) }),
      }
      const payloads = payloadsOf(json)
      if (payloads.length > 1 && options.dedupe !== undefined) {
        throw new CliError('usage', '--dedupe works with a single message only')
      }
      const items = payloads.map((payload) => ({ queue, payload, ...more }))
      const stored: { message_id: string; status: string; transaction_id: string }[] = []
      for (const request of requestsOf(items)) {
        const { body } = await api.post('/api/v1/push', { items: request }).catch((error) => {
          throw partly(error, stored.length, items.length)
        })
        stored.push(...body)
      }
      if (!output.isHuman) output.json(stored)
      else if (stored.length === 1) output.line(`${stored[0]?.status}  ${stored[0]?.message_id}`)
      else output.line(`${stored.length} messages stored`)
    })
}

/** Splits the items into requests, in order. An item that is too large for any request goes alone. */
function requestsOf<Item>(items: readonly Item[]): Item[][] {
  const requests: Item[][] = []
  let chars = 0
  for (const item of items) {
    const { length } = stringifyExact(item)
    const last = requests.at(-1)
    chars += length
    if (last !== undefined && last.length < itemsMax && chars <= requestCharsMax) last.push(item)
    else {
      requests.push([item])
      chars = length
    }
  }
  return requests
}

/** Reports how many messages were stored, because a repeat of the whole input would store them twice. */
function partly(error: unknown, stored: number, count: number): unknown {
  if (!(error instanceof CliError) || stored === 0) return error
  return new CliError(
    error.code,
    `the first ${stored} of ${count} messages were stored, then: ${error.message}`,
  )
}

function payloadsOf(json: string): unknown[] {
  if (json !== '-') return [parse(json.startsWith('@') ? read(json.slice(1)) : json, 'the payload')]
  const lines = read(0).split('\n')
  return lines.flatMap((line, i) => (line.trim() === '' ? [] : [parse(line, `line ${i + 1}`)]))
}

function read(file: string | 0): string {
  try {
    return readFileSync(file, 'utf8')
  } catch (error) {
    throw new CliError('usage', (error as Error).message)
  }
}

function parse(text: string, what: string): unknown {
  try {
    return parseExact(text)
  } catch {
    throw new CliError('usage', `${what} is not JSON; a string needs double quotes: '"hello"'`)
  }
}

function headersOf(pairs: readonly string[]): Record<string, string> {
  return Object.fromEntries(
    pairs.map((pair) => {
      const at = pair.indexOf('=')
      if (at < 1)
        throw new CliError('usage', `${JSON.stringify(pair)} is not a header: write name=value`)
      return [pair.slice(0, at), pair.slice(at + 1)]
    }),
  )
}

function collect(value: string, before: readonly string[] = []): readonly string[] {
  return [...before, value]
}
