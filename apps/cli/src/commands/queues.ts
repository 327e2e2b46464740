import type { Command } from 'commander'
import { type Api, type Json, segment } from '../api.ts'
import { ago } from '../format.ts'
import type { TableColumn } from '../table.ts'
import { sessionOf, verb } from '../verb.ts'

export function queuesVerb(program: Command): void {
  const queues = verb(
    program,
    'queues',
    'list the queues, or manage one',
    `rouse queues
rouse queues get orders
rouse queues pause orders`,
  )
  queues.action(async (_options: object, command: Command) => {
    const { api, output } = sessionOf(command)
    if (!output.isHuman) return output.json(await queuesAsJson(api))
    const all = await api.all('/api/v1/queues', 'queues')
    output.table(worstFirst(all), queueColumns, 'no queues yet')
  })

  verb(queues, 'get <queue>', 'show one queue with its options', 'rouse queues get orders').action(
    async (queue: string, _options: object, command: Command) => {
      const { api, output } = sessionOf(command)
      const [{ body }, { body: figures }] = await Promise.all([
        api.get(`/api/v1/resources/queues/${segment(queue)}`),
        api.get(`/api/v1/queues/${segment(queue)}`),
      ])
      if (!output.isHuman) return output.json({ ...figures, ...body })
      output.table([figures], queueColumns, '')
      if (body.purging !== undefined)
        output.line(`purge in progress since ${body.purging.requestedAt}`)
      output.line()
      const options = Object.entries(body.options)
      output.table(
        options,
        [
          { title: 'OPTION', value: ([name]) => name },
          { title: 'VALUE', value: ([, value]) => JSON.stringify(value) },
        ],
        '',
      )
    },
  )

  for (const [name, description] of [
    ['pause', 'stop delivery'],
    ['resume', 'resume delivery'],
    ['purge', 'delete all messages of the queue'],
  ] as const) {
    verb(queues, `${name} <queue>`, description, `rouse queues ${name} orders`).action(
      async (queue: string, _options: object, command: Command) => {
        const { api, output } = sessionOf(command)
        const { body } = await api.post(`/api/v1/queues/${segment(queue)}/${name}`)
        if (!output.isHuman) return output.json(body)
        output.line(name === 'purge' ? purgedLine(queue, body) : `${queue}: ${name}d`)
      },
    )
  }

  verb(queues, 'rm <queue>', 'delete the queue and its messages', 'rouse queues rm orders').action(
    async (queue: string, _options: object, command: Command) => {
      const { api, output } = sessionOf(command)
      const { body } = await api.delete(`/api/v1/resources/queues/${segment(queue)}`)
      if (output.isHuman) output.line(`${queue}: deleted`)
      else output.json(body)
    },
  )
}

function purgedLine(queue: string, { purged, purging }: Json): string {
  return purging === true
    ? `${queue}: the queue is large and is purged in the background; "rouse queues get ${queue}" shows whether the purge is still in progress`
    : `${purged} messages deleted`
}

/** Each queue with its figures and its consumer groups. */
export async function queuesAsJson(api: Api): Promise<Json[]> {
  const [queues, figures] = await Promise.all([
    api.all('/api/v1/resources/queues', 'queues'),
    api.all('/api/v1/queues', 'queues'),
  ])
  const figuresOf = new Map(figures.map((one) => [one.queue, one]))
  return queues.map((one) => ({ ...figuresOf.get(one.queue), ...one }))
}

export const queueColumns: readonly TableColumn<Json>[] = [
  { title: 'QUEUE', value: ({ queue }) => queue },
  { title: 'READY', align: 'right', value: ({ ready }) => ready },
  { title: 'LEASED', align: 'right', value: ({ leased }) => leased },
  { title: 'RETRYING', align: 'right', value: ({ retrying }) => retrying },
  { title: 'SCHEDULED', align: 'right', value: ({ scheduled }) => scheduled },
  { title: 'DEAD', align: 'right', value: ({ dead }) => dead },
  { title: 'CONSUMERS', align: 'right', value: ({ consumers }) => consumers },
  { title: 'IN/s', align: 'right', value: ({ pushedPerSecond }) => rate(pushedPerSecond) },
  { title: 'OUT/s', align: 'right', value: ({ completedPerSecond }) => rate(completedPerSecond) },
  { title: 'OLDEST', align: 'right', value: ({ oldestAgeMs }) => ago(oldestAgeMs) },
  { title: 'STATE', value: stateOf },
]

/** A node of an earlier release has no rates. */
function rate(perSecond: number | undefined): string | undefined {
  return perSecond?.toFixed(perSecond < 100 ? 1 : 0)
}

function stateOf({ state, held }: Json): string {
  if (state === 'no_consumers') return 'no consumers'
  if (state !== 'held') return state
  const reason = held.errorMessage === null ? '' : `: "${held.errorMessage}"`
  return `held${reason} until ${new Date(held.until).toLocaleTimeString('en-GB')}`
}

const statesByHarm = ['held', 'no_consumers', 'paused', 'ok']

/** Queues that do not move first, then those with the most messages. */
export function worstFirst(queues: readonly Json[]): Json[] {
  const harm = ({ state }: Json) => statesByHarm.indexOf(state)
  return [...queues].sort((a, b) => harm(a) - harm(b) || b.ready - a.ready)
}
