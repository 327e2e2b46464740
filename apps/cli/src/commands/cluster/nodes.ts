import type { Command } from 'commander'
import type { Json } from '../../api.ts'
import { sessionOf, verb } from '../../verb.ts'

export function nodesVerb(program: Command): void {
  verb(program, 'nodes', 'list the nodes of the cluster', 'rouse nodes').action(
    async (_options: object, command: Command) => {
      const { api, output } = sessionOf(command)
      const { body } = await api.get('/api/v1/nodes')
      if (!output.isHuman) return output.json(body.nodes)
      output.table(
        body.nodes as readonly Json[],
        [
          { title: 'NODE', value: ({ id, self }) => (self === true ? `${id} *` : id) },
          { title: 'STATE', value: ({ state }) => state },
          { title: 'URL', value: ({ url }) => url, widthMin: 20 },
          { title: 'VERSION', value: ({ version }) => version },
          {
            title: 'RTT',
            align: 'right',
            widthLeast: 8,
            value: ({ rttMs }) => milliseconds(rttMs),
          },
          { title: 'GOSSIP', value: ({ gossip }) => gossip, optional: true },
          {
            title: 'WAKES SENT',
            align: 'right',
            value: ({ hintsSent }) => hintsSent,
            optional: true,
          },
          {
            title: 'RECEIVED',
            align: 'right',
            value: ({ hintsReceived }) => hintsReceived,
            optional: true,
          },
        ],
        'there are no nodes',
      )
      output.note('* this node answered the request; it reports the states of the others')
    },
  )
}

function milliseconds(value: number | undefined): string {
  return value === undefined ? '–' : `${value.toFixed(1)} ms`
}
