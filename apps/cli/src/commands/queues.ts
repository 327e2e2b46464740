import type { Command } from 'commander'
import { type Json, segment } from '../api.ts'
import { wallMs } from '../clock.ts'
import { since } from '../format.ts'
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
    const all = await api.all('/api/v1/resources/queues', 'queues')
    if (!output.isHuman) return output.json(all)
    output.table(all, queueColumns(wallMs()), 'no queues yet')
  })

  verb(queues, 'get <queue>', 'show one queue with its options', 'rouse queues get orders').action(
    async (queue: string, _options: object, command: Command) => {
      const { api, output } = sessionOf(command)
      const { body } = await api.get(`/api/v1/resources/queues/${segment(queue)}`)
      if (!output.isHuman) return output.json(body)
      output.table([body], queueColumns(wallMs()), '')
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

/** One row per queue: the sums of its consumer groups, and the lag of the slowest group. */
export function queueColumns(now: number): TableColumn<Json>[] {
  const sum = (field: string) => (queue: Json) =>
    queue.groups.reduce((total: number, group: Json) => total + group[field], 0)
  return [
    { title: 'QUEUE', value: ({ queue }) => queue },
    { title: 'MESSAGES', align: 'right', value: ({ messages }) => messages },
    { title: 'PENDING', align: 'right', value: sum('pending') },
    { title: 'IN FLIGHT', align: 'right', value: sum('inFlight') },
    { title: 'DEAD', align: 'right', value: sum('dead') },
    { title: 'GROUPS', align: 'right', value: ({ groups }) => groups.length },
    { title: 'LAG', align: 'right', value: ({ groups }) => since(oldest(groups), now) },
    { title: 'STATE', value: ({ paused }) => (paused === true ? 'paused' : 'ok') },
  ]
}

function oldest(groups: readonly Json[]): string | null {
  const times = groups.map(({ oldestPendingAt }) => oldestPendingAt as string | null)
  return times.filter((time) => time !== null).sort((a, b) => a.localeCompare(b))[0] ?? null
}
