import type { Command } from 'commander'
import { type Api, type Json, query, segment } from '../api.ts'
import { CliError } from '../cli-error.ts'
import { wallMs } from '../clock.ts'
import { type ConfirmOptions, confirm, withConfirmation } from '../confirm.ts'
import { stringifyExact } from '../exact-json.ts'
import { brief, count, since, time } from '../format.ts'
import type { Output } from '../output.ts'
import { shellLine } from '../shell.ts'
import { defaultVerb, sessionOf, verb } from '../verb.ts'
import { errorOf, holderOf } from './messages.ts'

export function dlqVerb(program: Command): void {
  const dlq = verb(
    program,
    'dlq',
    'list, show, redrive and purge dead letters',
    `rouse dlq errors orders
rouse dlq show ID
rouse dlq redrive orders --dry-run`,
  )
  addList(dlq)
  addErrors(dlq)
  addShow(dlq)
  addRedrive(dlq)
  addStatus(dlq)
  addPurge(dlq)
}

interface ListOptions {
  readonly group?: string
  readonly error?: string
  readonly limit: number
  readonly cursor?: string
}

function addList(dlq: Command): void {
  defaultVerb(
    dlq,
    'list',
    'list dead letters, newest first',
    'rouse dlq list orders --error E_TIMEOUT',
  )
    .argument('[queue]')
    .option('-g, --group <group>', 'only this consumer group')
    .option('--error <code>', 'only this error code')
    .option('-n, --limit <count>', 'maximum number', count, 50)
    .option('--cursor <cursor>', 'continue after the page that printed this cursor')
    .action(async (queue: string | undefined, _options: ListOptions, command: Command) => {
      const { api, output, options } = sessionOf<ListOptions>(command)
      const { group: consumerGroup, error: errorCode, limit, cursor } = options
      const asked = query({ queue, consumerGroup, errorCode, limit, cursor })
      const { body } = await api.get(`/api/v1/dead-letters${asked}`)
      if (body.deadLetters.length === 0) await requireQueue(queue, api)
      if (!output.isHuman) return output.json(body)
      const now = wallMs()
      output.table<Json>(
        body.deadLetters,
        [
          { title: 'ID', value: ({ id }) => id },
          ...(queue === undefined
            ? [{ title: 'QUEUE', value: (row: Json) => row.queue, widthMin: 8 }]
            : []),
          { title: 'GROUP', value: (row) => row.consumerGroup, widthMin: 7, optional: true },
          { title: 'TRIES', align: 'right', value: attemptsOf },
          {
            title: 'DIED',
            align: 'right',
            widthLeast: 6,
            value: ({ failedAt }) => since(failedAt, now),
          },
          { title: 'ERROR', value: errorOf, widthMin: 17 },
          { title: 'DATA', value: ({ data }) => brief(data, 60), widthMin: 10, optional: true },
        ],
        'no dead letters',
      )
      if (body.cursor) output.hint('more', `--cursor ${body.cursor}`)
    })
}

/** A queue that does not exist is an error, as in the other verbs. */
async function requireQueue(queue: string | undefined, api: Api): Promise<void> {
  if (queue !== undefined) await api.get(`/api/v1/queues/${segment(queue)}`)
}

function addErrors(dlq: Command): void {
  verb(dlq, 'errors', 'count dead letters by error', 'rouse dlq errors orders')
    .argument('[queue]')
    .option('-g, --group <group>', 'only this consumer group')
    .action(async (queue: string | undefined, _options: object, command: Command) => {
      const { api, output, options } = sessionOf<{ readonly group?: string }>(command)
      const asked = query({ queue, consumerGroup: options.group })
      const { body } = await api.get(`/api/v1/dead-letters/errors${asked}`)
      if (body.errors.length === 0) await requireQueue(queue, api)
      if (!output.isHuman) return output.json(body)
      const now = wallMs()
      output.table<Json>(
        body.errors,
        [
          { title: 'COUNT', align: 'right', value: (row) => row.count },
          { title: 'QUEUE', value: (row) => row.queue, widthMin: 8 },
          { title: 'GROUP', value: ({ consumerGroup }) => consumerGroup, widthMin: 7 },
          {
            title: 'LAST',
            align: 'right',
            widthLeast: 6,
            value: (row) => since(row.lastFailedAt, now),
          },
          { title: 'CODE', value: ({ errorCode }) => errorCode, widthMin: 8 },
          { title: 'ERROR', value: ({ errorMessage }) => errorMessage, widthMin: 10 },
        ],
        'no dead letters',
      )
    })
}

function addShow(dlq: Command): void {
  verb(
    dlq,
    'show',
    'show a dead letter with its payload and all attempts',
    'rouse dlq show 019a9bd6-5b1c-7000-8000-000000000000',
  )
    .argument('<id>', 'the ID of dlq list')
    .action(async (id: string, _options: object, command: Command) => {
      const { api, output } = sessionOf(command)
      const { body } = await api.get(`/api/v1/dead-letters/${segment(id)}`)
      if (!output.isHuman) return output.json(body)
      for (const [i, letter] of (body.deadLetters as readonly Json[]).entries()) {
        if (i > 0) output.line()
        printLetter(letter, output)
      }
      const { queue } = body.deadLetters[0]
      output.hint('deliver it again', shellLine('rouse', 'dlq', 'redrive', queue, '--id', id))
    })
}

function printLetter(letter: Json, output: Output): void {
  const { id, queue, partition, consumerGroup, failedAt, createdAt, headers, data } = letter
  output.fields([
    ['id', id],
    ['queue', queue],
    ['partition', partition],
    ['group', consumerGroup],
    ['pushed', createdAt],
    ['died', failedAt],
    ['error', errorOf(letter)],
    ['headers', headers === null ? null : stringifyExact(headers)],
    ['data', stringifyExact(data, 2)],
  ])
  output.line()
  const now = wallMs()
  output.table<Json>(
    letter.history,
    [
      { title: 'TRY', align: 'right', value: ({ attempt }) => attempt },
      { title: 'ENDED', align: 'right', widthLeast: 6, value: (row) => since(row.endedAt, now) },
      { title: 'BY', value: holderOf, widthMin: 8 },
      { title: 'ERROR', value: errorOf, widthMin: 10 },
    ],
    'no attempts were recorded',
  )
}

interface RedriveOptions {
  readonly group?: string
  readonly id?: string
  readonly error?: string
  readonly rate?: number
  readonly dryRun?: boolean
}

function addRedrive(dlq: Command): void {
  verb(
    dlq,
    'redrive',
    'deliver dead letters again, with attempts counted from zero',
    `rouse dlq redrive orders --dry-run
rouse dlq redrive orders --error E_TIMEOUT --rate 100`,
  )
    .argument('<queue>')
    .option('-g, --group <group>', 'only this consumer group')
    .option('--id <id>', 'only this dead letter: its ID in dlq list, or its letterId')
    .option('--error <code>', 'only this error code')
    .option('--rate <count>', 'maximum number per second', count)
    .option('--dry-run', 'only show how many dead letters match')
    .action(async (queue: string, _options: RedriveOptions, command: Command) => {
      const { api, output, options } = sessionOf<RedriveOptions>(command)
      const { group: consumerGroup, id, error: errorCode, rate, dryRun } = options
      const where = { consumerGroup, errorCode, ...whereId(id) }
      const asked = { queue, where, rate, dryRun }
      const { body } = await api.post('/api/v1/dead-letters/redrives', asked)
      if (!output.isHuman) output.json(body)
      if (id !== undefined && body.total === 0) {
        throw new CliError('nothing', `no dead letter of ${queue} has the id ${id}`)
      }
      if (!output.isHuman) return
      if (dryRun === true) return output.line(`would redrive ${letters(body.total)}`)
      output.line(`redriving ${letters(body.total)}`)
      output.hint('progress', shellLine('rouse', 'dlq', 'status', body.id))
    })
}

const letterOrMessageId = /^(?:[1-9]\d{0,17}|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})$/i

/** `id` is the number of a dead letter, the UUID of its message, or the transactionId of its message. */
function whereId(id: string | undefined): Json {
  if (id === undefined) return {}
  return letterOrMessageId.test(id) ? { ids: [id] } : { transactionId: id }
}

function addStatus(dlq: Command): void {
  verb(dlq, 'status', 'show the progress of a redrive, or cancel it', 'rouse dlq status ID')
    .argument('<id>', 'the id that redrive printed')
    .option('--cancel', 'stop it; what was redriven stays')
    .action(async (id: string, _options: object, command: Command) => {
      const { api, output, options } = sessionOf<{ readonly cancel?: boolean }>(command)
      const path = `/api/v1/dead-letters/redrives/${segment(id)}`
      const { body } = options.cancel === true ? await api.delete(path) : await api.get(path)
      if (!output.isHuman) return output.json(body)
      output.fields([
        ['queue', body.queue],
        ['state', body.state],
        ['redriven', `${body.moved} of ${body.total}`],
        ['rate', body.rate === null ? 'no limit' : `${body.rate} per second`],
        ['started', body.startedAt],
        ['updated', body.updatedAt],
      ])
    })
}

interface PurgeOptions extends ConfirmOptions {
  readonly group?: string
  readonly error?: string
  readonly before?: string
}

function addPurge(dlq: Command): void {
  withConfirmation(
    verb(
      dlq,
      'purge',
      'delete dead letters of a queue permanently',
      `rouse dlq purge orders --error E_GONE
rouse dlq purge orders --before 2026-11-01 --yes`,
    ),
  )
    .argument('<queue>')
    .option('-g, --group <group>', 'only this consumer group')
    .option('--error <code>', 'only this error code')
    .option('--before <time>', 'only those that died at this time or earlier', time)
    .action(async (queue: string, _options: PurgeOptions, command: Command) => {
      const { api, output, options } = sessionOf<PurgeOptions>(command)
      const { group: consumerGroup, error: errorCode, before: to } = options
      const where = { consumerGroup, errorCode, to }
      const plan = await api.post('/api/v1/dead-letters/redrives', { queue, where, dryRun: true })
      await confirm(`delete ${letters(plan.body.total)} of queue "${queue}"`, api, options)
      const asked = query({ queue, consumerGroup, errorCode, to })
      const { body } = await api.delete(`/api/v1/dead-letters${asked}`)
      if (!output.isHuman) return output.json(body)
      output.line(`${queue}: ${letters(body.deleted)} deleted`)
    })
}

function letters(number: number): string {
  return number === 1 ? '1 dead letter' : `${number} dead letters`
}

function attemptsOf({ attempts }: Json): number {
  return Array.isArray(attempts) ? attempts.length : attempts
}
