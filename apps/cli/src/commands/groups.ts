import type { Command } from 'commander'
import { wallMs } from '../clock.ts'
import { since } from '../format.ts'
import { sessionOf, verb } from '../verb.ts'

export function groupsVerb(program: Command): void {
  verb(program, 'groups', 'list the consumer groups', 'rouse groups').action(
    async (_options: object, command: Command) => {
      const { api, output } = sessionOf(command)
      const groups = await api.all('/api/v1/consumer-groups', 'groups')
      if (!output.isHuman) return output.json(groups)
      const now = wallMs()
      output.table(
        groups as readonly Record<string, never>[],
        [
          { title: 'GROUP', value: ({ consumerGroup }) => consumerGroup },
          { title: 'QUEUE', value: ({ queue }) => queue },
          { title: 'PENDING', align: 'right', value: ({ pending }) => pending },
          { title: 'IN FLIGHT', align: 'right', value: ({ inFlight }) => inFlight },
          { title: 'TO RETRY', align: 'right', value: ({ redeliveries }) => redeliveries },
          { title: 'DEAD', align: 'right', value: ({ dead }) => dead },
          { title: 'LAG', align: 'right', value: (row) => since(row.oldestPendingAt, now) },
          { title: 'SEEN', align: 'right', value: (row) => since(row.lastSeenAt, now) },
        ],
        'no consumer group has popped yet',
      )
    },
  )
}
