import type { Command } from 'commander'
import type { Json } from '../../api.ts'
import { absence } from '../../format.ts'
import { sessionOf, verb } from '../../verb.ts'

interface Options {
  readonly cluster?: boolean
}

export function statsVerb(program: Command): void {
  verb(
    program,
    'stats',
    'show the stats of a node or of the cluster',
    `rouse stats
rouse stats --cluster --json`,
  )
    .option('--cluster', 'stats of every node')
    .action(async (_options: Options, command: Command) => {
      const { api, output, options } = sessionOf<Options>(command)
      const { body } = await api.get(options.cluster === true ? '/stats?scope=cluster' : '/stats')
      if (!output.isHuman) return output.json(body)
      output.table(
        (body.nodes ?? [body]) as readonly Json[],
        [
          { title: 'NODE', value: ({ node }) => node },
          { title: 'MODE', value: ({ mode }) => mode.mode },
          { title: 'WHY', value: ({ mode }) => mode.why.join(' '), widthMin: 10 },
          { title: 'WORKERS', align: 'right', value: (row) => row.local_sidecars },
          { title: 'WAITING', align: 'right', value: ({ waiting }) => waiting.total },
          { title: 'GROUPS', align: 'right', value: (row) => row.group_backoff.groups_tracked },
          {
            title: 'IDLE',
            align: 'right',
            value: (row) => row.group_backoff.groups_backed_off,
          },
          { title: 'PEERS', align: 'right', value: ({ peers }) => peers.length },
          { title: 'REQUESTS', align: 'right', value: ({ requests }) => requests },
        ],
        'no stats',
      )
      for (const node of (body.unreachable ?? []) as readonly Json[]) output.note(absence(node))
    })
}
