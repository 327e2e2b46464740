import { readFileSync } from 'node:fs'
import { type Command, InvalidArgumentError, Option } from 'commander'
import type { Json } from '../api.ts'
import { CliError } from '../cli-error.ts'
import { parseExact, stringifyExact } from '../exact-json.ts'
import { collect, count, durationMs, messageCount, time } from '../format.ts'
import { sessionOf, verb } from '../verb.ts'

interface Options {
  readonly partition?: string
  readonly delay?: number
  readonly runAt?: string
  readonly priority?: number
  readonly dedupe?: string
  readonly unique?: string
  readonly uniqueScope?: string
  readonly uniqueUntil?: string
  readonly onConflict?: string
  readonly ttl?: number
  readonly retryLimit?: number
  readonly header?: readonly string[]
  readonly traceId?: string
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
rouse push emails '{"to": "ann"}' --delay 10m --unique welcome-42
cat orders.ndjson | rouse push orders -`,
  )
    .argument('<queue>')
    .argument(
      '<json>',
      'the payload; @FILE reads it from a file, - reads one per line from standard input',
    )
    .option('-p, --partition <name>', 'messages of a partition keep their order')
    .option(
      '-d, --delay <duration>',
      'deliver after this time, such as 250ms, 10s, 5m, 2h',
      durationMs,
    )
    .option('--run-at <time>', 'deliver at this time, such as 2026-11-17T08:00:00Z', time)
    .option('--priority <0-9>', 'higher first, among messages without a partition', priority)
    .option('--dedupe <key>', 'a second push with the same key stores nothing, for a time')
    .option('--unique <key>', 'at most one unfinished message has this key')
    .addOption(
      new Option('--unique-scope <scope>', 'where the key is unique').choices([
        'queue',
        'partition',
      ]),
    )
    .option('--unique-until <end>', 'completed, or a duration such as 1h', until)
    .addOption(
      new Option('--on-conflict <action>', 'if the key is taken').choices([
        'ignore',
        'replace',
        'reject',
      ]),
    )
    .option('--ttl <duration>', 'give the message up if no consumer got it by then', durationMs)
    .option(
      '--retry-limit <count>',
      'retries after a failure, instead of those of the queue',
      count,
    )
    .option('-H, --header <name=value>', 'a header of the message; may be repeated', collect)
    .option('--trace-id <id>', 'an id that leads to the caller')
    .action(async (queue: string, json: string, _options: Options, command: Command) => {
      const { api, output, options } = sessionOf<Options>(command)
      const more = fieldsOf(options)
      const payloads = payloadsOf(json)
      for (const name of ['dedupe', 'unique'] as const) {
        if (payloads.length > 1 && options[name] !== undefined) {
          throw new CliError('usage', `--${name} works with a single message only`)
        }
      }
      const items = payloads.map((payload) => ({ queue, payload, ...more }))
      const stored: { id: string; status: string }[] = []
      for (const request of requestsOf(items)) {
        const { body } = await api.post('/api/v1/push', { items: request }).catch((error) => {
          throw partly(error, stored.length, items.length)
        })
        stored.push(...body)
      }
      if (!output.isHuman) output.json(stored)
      else if (stored.length === 1) output.line(`${stored[0]?.status}  ${stored[0]?.id}`)
      else output.line(`${messageCount(stored.length)} stored`)
    })
}

function fieldsOf(options: Options): Json {
  const { partition, delay, runAt, priority, dedupe, ttl, retryLimit, header, traceId } = options
  const fields = {
    partition,
    delayMs: delay,
    runAt,
    priority,
    dedupeKey: dedupe,
    unique: uniqueOf(options),
    ttlMs: ttl,
    retryLimit,
    headers: header === undefined ? undefined : headersOf(header),
    traceId,
  }
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined))
}

function uniqueOf({ unique: key, uniqueScope, uniqueUntil, onConflict }: Options): Json {
  const more = [uniqueScope, uniqueUntil, onConflict].some((one) => one !== undefined)
  if (key === undefined) {
    if (more) throw new CliError('usage', 'there is no key: add --unique KEY')
    return undefined
  }
  return {
    key,
    ...(uniqueScope === undefined ? {} : { scope: uniqueScope }),
    ...(uniqueUntil === undefined ? {} : { until: untilField(uniqueUntil) }),
    ...(onConflict === undefined ? {} : { onConflict }),
  }
}

function until(text: string): string {
  if (text !== 'completed') durationMs(text)
  return text
}

function untilField(text: string): string | { windowMs: number } {
  return text === 'completed' ? text : { windowMs: durationMs(text) }
}

function priority(text: string): number {
  if (!/^\d$/.test(text)) throw new InvalidArgumentError('Write a number from 0 to 9.')
  return Number(text)
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

/** A payload as it stands on the command line; `@FILE` reads it from a file. */
export function payloadOf(json: string): unknown {
  return parsePayload(json.startsWith('@') ? read(json.slice(1)) : json, 'the payload')
}

function payloadsOf(json: string): unknown[] {
  if (json !== '-') return [payloadOf(json)]
  const lines = read(0).split('\n')
  return lines.flatMap((line, i) =>
    line.trim() === '' ? [] : [parsePayload(line, `line ${i + 1}`)],
  )
}

function read(file: string | 0): string {
  try {
    return readFileSync(file, 'utf8')
  } catch (error) {
    throw new CliError('usage', (error as Error).message)
  }
}

function parsePayload(text: string, what: string): unknown {
  try {
    return parseExact(text)
  } catch {
    throw new CliError('usage', `${what} is not JSON; a string needs double quotes: '"hello"'`)
  }
}

export function headersOf(pairs: readonly string[]): Record<string, string> {
  return Object.fromEntries(
    pairs.map((pair) => {
      const at = pair.indexOf('=')
      if (at < 1)
        throw new CliError('usage', `${JSON.stringify(pair)} is not a header: write name=value`)
      return [pair.slice(0, at), pair.slice(at + 1)]
    }),
  )
}
