import type { Command } from 'commander'
import { type Json, query } from '../api.ts'
import { CliError } from '../cli-error.ts'
import { wallMs } from '../clock.ts'
import { brief, count, since } from '../format.ts'
import { sessionOf, verb } from '../verb.ts'

interface ListOptions {
  readonly group?: string
  readonly limit: number
  readonly offset: number
}

interface RedriveOptions {
  readonly group?: string
  readonly id?: string
  readonly error?: string
  readonly rate?: number
  readonly dryRun?: boolean
}

export function dlqVerb(program: Command): void {
  const dlq = verb(
    program,
    'dlq',
    'list and redrive dead letters',
    `rouse dlq list orders
rouse dlq errors orders
rouse dlq redrive orders --dry-run`,
  )
  addList(dlq)
  addErrors(dlq)
  addRedrive(dlq)
}

function addList(dlq: Command): void {
  verb(dlq, 'list [queue]', 'list dead letters, newest first', 'rouse dlq list orders --limit 10')
    .option('-g, --group <name>', 'only this consumer group')
    .option('-n, --limit <count>', 'maximum number', count, 50)
    .option('--offset <count>', 'number to skip', count, 0)
    .action(async (queue: string | undefined, _options: ListOptions, command: Command) => {
      const { api, output, options } = sessionOf<ListOptions>(command)
      const { group: consumerGroup, limit, offset } = options
      const { body } = await api.get(`/api/v1/dlq${query({ queue, consumerGroup, limit, offset })}`)
      if (!output.isHuman) return output.json(body)
      const now = wallMs()
      output.table(
        body.messages as readonly Json[],
        [
          { title: 'ID', value: ({ id }) => id },
          { title: 'QUEUE', value: (row) => row.queue },
          { title: 'GROUP', value: (row) => row.consumerGroup },
          { title: 'ATTEMPTS', align: 'right', value: (row) => attemptsOf(row) },
          { title: 'DIED', align: 'right', value: ({ failedAt }) => since(failedAt, now) },
          { title: 'ERROR', value: (row) => row.errorCode ?? row.errorMessage },
          { title: 'DATA', value: ({ data }) => brief(data, 40) },
        ],
        'no dead letters',
      )
      output.note(`${body.total} in total`)
    })
}

function addErrors(dlq: Command): void {
  verb(dlq, 'errors [queue]', 'count dead letters by error', 'rouse dlq errors orders').action(
    async (queue: string | undefined, _options: object, command: Command) => {
      const { api, output } = sessionOf(command)
      const { body } = await api.get(`/api/v1/dlq/groups${query({ queue })}`)
      if (!output.isHuman) return output.json(body)
      output.table(
        body.groups as readonly Json[],
        [
          { title: 'QUEUE', value: (row) => row.queue },
          { title: 'GROUP', value: ({ consumerGroup }) => consumerGroup },
          { title: 'CODE', value: ({ errorCode }) => errorCode },
          { title: 'ERROR', value: ({ errorMessage }) => errorMessage },
          { title: 'COUNT', align: 'right', value: (row) => row.count },
        ],
        'no dead letters',
      )
    },
  )
}

function addRedrive(dlq: Command): void {
  verb(
    dlq,
    'redrive <queue>',
    'deliver dead letters again, with attempts counted from zero',
    `rouse dlq redrive orders --dry-run
rouse dlq redrive orders --error E_TIMEOUT --rate 100`,
  )
    .option('-g, --group <name>', 'only this consumer group')
    .option('--id <id>', 'only this dead letter: its ID in dlq list, or the id of its message')
    .option('--error <code>', 'only this error code')
    .option('--rate <count>', 'maximum number per second', count)
    .option('--dry-run', 'only show how many dead letters match')
    .action(async (queue: string, _options: RedriveOptions, command: Command) => {
      const { api, output, options } = sessionOf<RedriveOptions>(command)
      const { group: consumerGroup, id, error: errorCode, rate, dryRun } = options
      const where = { consumerGroup, errorCode, ...whereId(id) }
      const { body } = await api.post('/api/v1/dlq/redrive', { queue, where, rate, dryRun })
      if (!output.isHuman) output.json(body)
      if (id !== undefined && body.total === 0) {
        throw new CliError('nothing', `no dead letter of ${queue} has the id ${id}`)
      }
      if (!output.isHuman) return
      if (dryRun === true) output.line(`would redrive ${body.total ?? body.matched}`)
      else output.line(`redriving ${body.total ?? body.matched}  (${body.id})`)
    })
}

const letterOrMessageId = /^(?:[1-9]\d{0,17}|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})$/i

/** `id` is the number of a dead letter, the UUID of its message, or the transactionId of its message. */
function whereId(id: string | undefined): Json {
  if (id === undefined) return {}
  return letterOrMessageId.test(id) ? { ids: [id] } : { transactionId: id }
}

function attemptsOf({ attempts }: Json): number {
  return Array.isArray(attempts) ? attempts.length : attempts
}
