import { type Command, Option } from 'commander'
import colors from 'picocolors'
import { type Api, type Json, query, segment } from '../api.ts'
import { CliError } from '../cli-error.ts'
import { wallMs } from '../clock.ts'
import { type ConfirmOptions, confirm, withConfirmation } from '../confirm.ts'
import { stringifyExact } from '../exact-json.ts'
import { brief, count, messageCount, since, time } from '../format.ts'
import { groupShown } from '../names.ts'
import type { Output } from '../output.ts'
import type { TableColumn } from '../screen/table.ts'
import { defaultVerb, sessionOf, verb } from '../verb.ts'

const states = ['scheduled', 'ready', 'leased', 'retrying', 'dead', 'completed', 'cancelled']
const cancellableStates = ['ready', 'retrying', 'scheduled']

export function messagesVerb(program: Command): void {
  const messages = verb(
    program,
    'messages',
    'list messages without taking them, show or cancel one',
    `rouse messages orders --state retrying
rouse messages get ID
rouse messages cancel ID`,
  )
  addList(messages)
  addGet(messages)
  addCancel(messages)
  addRunNow(messages)
}

interface ListOptions {
  readonly partition?: string
  readonly group?: string
  readonly state?: string
  readonly status?: string
  readonly from?: string
  readonly to?: string
  readonly cursor?: string
  readonly limit?: number
}

function addList(messages: Command): void {
  defaultVerb(
    messages,
    'list',
    'list the messages of a queue without taking them',
    'rouse messages list orders --state retrying',
  )
    .argument('<queue>')
    .option('-p, --partition <name>', 'only this partition')
    .option(
      '-g, --group <group>',
      'the state in this consumer group; default: the unnamed one, or the only one',
    )
    .addOption(new Option('-s, --state <state>', 'only this state').choices(states))
    .addOption(new Option('--status <status>', 'the older name of --state').hideHelp())
    .option('--from <time>', 'only those pushed at this time or later', time)
    .option('--to <time>', 'only those pushed at this time or earlier', time)
    .option('-n, --limit <count>', 'maximum number', count)
    .option('--cursor <cursor>', 'continue after the page that printed this cursor')
    .action(async (queue: string, _options: ListOptions, command: Command) => {
      const { api, output, options } = sessionOf<ListOptions>(command)
      const { partition, group, state, status, from, to, cursor, limit } = options
      const consumerGroup = await groupShown(queue, group, api, output)
      const asked = { queue, partition, consumerGroup, state, status, from, to, cursor, limit }
      const { body } = await api.get(`/api/v1/messages${query(asked)}`)
      if (!output.isHuman) return output.json(body)
      const now = wallMs()
      output.table<Json>(
        body.messages,
        [
          { title: 'ID', value: ({ id }) => id },
          ...(body.messages.some(hasValue(partitionOf)) ? [partitionColumn] : []),
          { title: 'STATE', value: (row) => stateOf(row) },
          {
            title: 'AGE',
            align: 'right',
            widthLeast: 6,
            value: ({ createdAt }) => since(createdAt, now),
          },
          { title: 'DATA', value: ({ data }) => brief(data, 120), widthMin: 10 },
        ],
        'no matching messages',
      )
      if (body.cursor) output.hint('more', `--cursor ${body.cursor}`)
    })
}

const partitionOf = (row: Json): string | null => row.partition
const partitionColumn: TableColumn<Json> = { title: 'PARTITION', value: partitionOf, widthMin: 9 }

/** Lists have the older word for `ready`. */
function stateOf({ state, status }: Json): string {
  const known = state ?? status
  return known === 'pending' ? 'ready' : known
}

function addGet(messages: Command): void {
  verb(
    messages,
    'get',
    'show a message with its state and attempts in every consumer group',
    'rouse messages get 019a9bd6-5b1c-7000-8000-000000000000',
  )
    .argument('<id>', 'the id that push, pop and lists show')
    .alias('show')
    .action(async (id: string, _options: object, command: Command) => {
      const { api, output } = sessionOf(command)
      const { body } = await api.get(`/api/v1/messages/${segment(id)}`)
      if (!output.isHuman) return output.json(body)
      printMessage(body, output)
    })
}

const groupColumns: readonly TableColumn<Json>[] = [
  { title: 'GROUP', value: ({ consumerGroup }) => consumerGroup, widthMin: 8 },
  { title: 'STATE', value: stateOf },
  { title: 'HELD BY', value: holderOf, widthMin: 8 },
  { title: 'LEASE ENDS', value: ({ leaseExpiresAt }) => leaseExpiresAt },
  { title: 'NEXT TRY', value: ({ nextTryAt }) => nextTryAt },
]

function hasValue(value: TableColumn<Json>['value']): (row: Json) => boolean {
  return (row) => value(row) !== null && value(row) !== undefined
}

function printMessage(message: Json, output: Output): void {
  const { id, state, queue, partition, dedupeKey, headers, data } = message
  const present = (value: unknown) => value !== null && value !== undefined
  output.fields(
    [
      ['id', id],
      ['state', state],
      ['queue', queue],
      ['partition', partition],
      ['dedupe key', dedupeKey],
      ['pushed', message.createdAt],
      ['due', message.dueAt],
      ['delivered', message.firstDeliveredAt],
      ['completed', message.completedAt],
      ['cancelled', message.cancelledAt],
      ['kept until', message.keptUntil],
      ['progress', present(message.progress) ? stringifyExact(message.progress) : null],
      ['result', present(message.result) ? stringifyExact(message.result, 2) : null],
      ['headers', present(headers) ? stringifyExact(headers) : null],
      ['data', stringifyExact(data, 2)],
    ].filter(([name, value]) => present(value) || name === 'partition') as [string, string][],
  )
  output.line()
  const now = wallMs()
  output.table<Json>(
    message.groups,
    groupColumns.filter(({ value }, i) => i < 2 || message.groups.some(hasValue(value))),
    'no consumer group has asked for messages of this queue yet',
  )
  if (message.attempts.length === 0) return
  output.line()
  output.table<Json>(
    message.attempts,
    [
      { title: 'ATTEMPT', align: 'right', value: ({ attempt }) => attempt },
      { title: 'GROUP', value: ({ consumerGroup }) => consumerGroup, widthMin: 7 },
      { title: 'ENDED', align: 'right', widthLeast: 6, value: (row) => since(row.endedAt, now) },
      { title: 'ERROR', value: errorOf, widthMin: 10, paint: () => colors.red },
    ],
    '',
  )
}

/**
 * The code alone hides the reason: every error without a code of its own has the name of its class. A code that was
 * made of the message adds nothing to it.
 */
export function errorOf({ errorCode, errorMessage }: Json): string | null {
  if (errorCode === null || errorMessage === null) return errorCode ?? errorMessage
  const isMadeOfMessage =
    errorMessage.startsWith(errorCode.split('*', 1)[0]) && errorCode.includes(' ')
  if (isMadeOfMessage || errorMessage.startsWith(errorCode)) return errorMessage
  return `${errorCode}: ${errorMessage}`
}

/** Who holds or held a message: the name that the consumer gave itself, else the process that delivered it. */
export function holderOf({ consumer, holder }: Json): string | null {
  return consumer ?? holder ?? null
}

interface CancelOptions extends ConfirmOptions {
  readonly queue?: string
  readonly state?: string
  readonly partition?: string
  readonly dryRun?: boolean
}

function addCancel(messages: Command): void {
  withConfirmation(
    verb(
      messages,
      'cancel',
      'cancel a message that no consumer holds, or all of a queue in one state',
      `rouse messages cancel ID
rouse messages cancel --queue orders --state scheduled --dry-run`,
    ),
  )
    .argument('[id]')
    .option('-q, --queue <queue>', 'cancel messages of this queue, instead of one id')
    .addOption(
      new Option('-s, --state <state>', 'with --queue: in this state').choices(cancellableStates),
    )
    .option('-p, --partition <name>', 'with --queue: only this partition')
    .option('--dry-run', 'with --queue: only count them')
    .action(async (id: string | undefined, _options: CancelOptions, command: Command) => {
      const { api, output, options } = sessionOf<CancelOptions>(command)
      const { queue, state } = options
      if ((id === undefined) === (queue === undefined)) {
        throw new CliError('usage', 'give an id, or --queue with --state')
      }
      if (id !== undefined) {
        const { body } = await api.delete(`/api/v1/messages/${segment(id)}`)
        if (!output.isHuman) return output.json(body)
        return output.line(`${id}: cancelled`)
      }
      if (state === undefined)
        throw new CliError('usage', `--state is missing: ${cancellableStates.join(', ')}`)
      await cancelAll(queue as string, state, api, output, options)
    })
}

async function cancelAll(
  queue: string,
  state: string,
  api: Api,
  output: Output,
  options: CancelOptions,
): Promise<void> {
  const { partition, dryRun } = options
  if (dryRun !== true) {
    const part = partition === undefined ? '' : `partition "${partition}" of `
    await confirm(`cancel all ${state} messages of ${part}queue "${queue}"`, api, options)
  }
  let [matched, cancelled] = [0, 0]
  let cursor: string | undefined
  do {
    const asked = query({ queue, state, partition, cursor, dryRun })
    const { body } = await api.delete(`/api/v1/messages${asked}`)
    matched += body.matched
    cancelled += body.cancelled
    cursor = body.cursor ?? undefined
  } while (cursor !== undefined)
  if (!output.isHuman)
    return output.json({ queue, state, dryRun: dryRun === true, matched, cancelled })
  output.line(
    dryRun === true
      ? `would cancel ${messageCount(matched)}`
      : `${queue}: ${messageCount(cancelled)} cancelled`,
  )
}

function addRunNow(messages: Command): void {
  verb(
    messages,
    'run-now',
    'make a scheduled message, or a retry, due now',
    'rouse messages run-now ID',
  )
    .argument('<id>')
    .action(async (id: string, _options: object, command: Command) => {
      const { api, output } = sessionOf(command)
      const { body } = await api.post(`/api/v1/messages/${segment(id)}/run-now`)
      if (!output.isHuman) return output.json(body)
      output.line(`${id}: due now (was ${body.state})`)
    })
}
