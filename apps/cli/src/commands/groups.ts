import { type Command, InvalidArgumentError } from 'commander'
import { type Json, segment } from '../api.ts'
import { wallMs } from '../clock.ts'
import { type ConfirmOptions, confirm, withConfirmation } from '../confirm.ts'
import { ago, since } from '../format.ts'
import { defaultVerb, sessionOf, verb } from '../verb.ts'

export function groupsVerb(program: Command): void {
  const groups = verb(
    program,
    'groups',
    'list consumer groups, delete or move one',
    `rouse groups list orders
rouse groups rm orders billing
rouse groups seek orders billing --to end`,
  )
  addList(groups)
  addRemove(groups)
  addSeek(groups)
}

function addList(groups: Command): void {
  defaultVerb(groups, 'list', 'list consumer groups', 'rouse groups list orders')
    .argument('[queue]')
    .action(async (queue: string | undefined, _options: object, command: Command) => {
      const { api, output } = sessionOf(command)
      const all = await api.all('/api/v1/groups', 'groups')
      const found = queue === undefined ? all : all.filter((one) => one.queue === queue)
      if (found.length === 0 && queue !== undefined) {
        // A queue that does not exist is an error, as in the other verbs.
        await api.get(`/api/v1/queues/${segment(queue)}`)
      }
      if (!output.isHuman) return output.json(found)
      const now = wallMs()
      output.table<Json>(
        found,
        [
          { title: 'QUEUE', value: (row) => row.queue, widthMin: 8 },
          { title: 'GROUP', value: ({ consumerGroup }) => consumerGroup, widthMin: 8 },
          { title: 'READY', align: 'right', value: ({ ready }) => ready },
          { title: 'LEASED', align: 'right', value: ({ leased }) => leased },
          { title: 'RETRYING', align: 'right', value: ({ retrying }) => retrying },
          { title: 'DEAD', align: 'right', value: ({ dead }) => dead },
          {
            title: 'OLDEST',
            align: 'right',
            widthLeast: 6,
            value: ({ oldestAgeMs }) => ago(oldestAgeMs),
          },
          {
            title: 'SEEN',
            align: 'right',
            widthLeast: 6,
            value: ({ lastSeenAt }) => since(lastSeenAt, now),
          },
        ],
        'no consumer group has asked for messages yet',
      )
    })
}

function addRemove(groups: Command): void {
  withConfirmation(
    verb(
      groups,
      'rm',
      'delete a consumer group of a queue, with its position',
      'rouse groups rm orders billing',
    ),
  )
    .argument('<queue>')
    .argument('<group>')
    .action(async (queue: string, group: string, _options: ConfirmOptions, command: Command) => {
      const { api, output, options } = sessionOf<ConfirmOptions>(command)
      const path = `/api/v1/groups/${segment(group)}/queues/${segment(queue)}`
      await confirm(`delete consumer group "${group}" of queue "${queue}"`, api, options)
      const { body } = await api.delete(path)
      if (!output.isHuman) return output.json(body)
      output.line(`${queue}: group ${group} deleted`)
    })
}

interface SeekOptions extends ConfirmOptions {
  readonly to: string
}

function addSeek(groups: Command): void {
  withConfirmation(
    verb(
      groups,
      'seek',
      'move a consumer group, so that it skips messages or gets them again',
      `rouse groups seek orders billing --to 2026-11-17T08:00:00Z
rouse groups seek orders billing --to end`,
    ),
  )
    .argument('<queue>')
    .argument('<group>')
    .requiredOption('--to <position>', 'start, end, or a time such as 2026-11-17T08:00:00Z', place)
    .action(async (queue: string, group: string, _options: SeekOptions, command: Command) => {
      const { api, output, options } = sessionOf<SeekOptions>(command)
      const { to } = options
      const act = `move consumer group "${group}" of queue "${queue}" to ${placeInWords(to)}`
      await confirm(act, api, options)
      const where = to === 'end' ? { toEnd: true } : { timestamp: to === 'start' ? epoch : to }
      const path = `/api/v1/groups/${segment(group)}/queues/${segment(queue)}/seek`
      const { body } = await api.post(path, where)
      if (!output.isHuman) return output.json(body)
      output.line(`${queue}: group ${group} moved to ${placeInWords(to)}`)
    })
}

const epoch = new Date(0).toISOString()

function place(text: string): string {
  if (text === 'start' || text === 'end') return text
  const atMs = Date.parse(text)
  if (Number.isNaN(atMs))
    throw new InvalidArgumentError('Write start, end, or a time such as 2026-11-17T08:00:00Z.')
  return new Date(atMs).toISOString()
}

function placeInWords(to: string): string {
  if (to === 'start') return 'the oldest message that is kept'
  return to === 'end' ? 'the end, behind all messages' : to
}
