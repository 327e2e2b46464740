import type { Command } from 'commander'
import { type Json, query } from '../../api.ts'
import { count } from '../../format.ts'
import type { TableColumn } from '../../screen/table.ts'
import { sessionOf, verb } from '../../verb.ts'

interface Options {
  readonly principal?: string
  readonly target?: string
  readonly outcome?: string
  readonly limit: number
}

export function auditVerb(program: Command): void {
  verb(
    program,
    'audit',
    'list who changed the cluster, and who was refused, newest first',
    'rouse audit --target orders --limit 20',
  )
    .option('--principal <name>', 'only the actions of keys with this name')
    .option('--target <name>', 'only this queue, schedule or key id')
    .option('--outcome <outcome>', 'only done, refused or failed')
    .option('-n, --limit <count>', 'maximum number', count, 50)
    .action(async (_options: Options, command: Command) => {
      const { api, output, options } = sessionOf<Options>(command)
      const { principal, target, outcome, limit } = options
      const { body } = await api.get(`/api/v1/audit${query({ principal, target, outcome, limit })}`)
      if (!output.isHuman) return output.json(body.entries)
      output.table(
        body.entries as readonly Json[],
        [
          { title: 'AT (UTC)', value: ({ at }) => at.slice(0, 19).replace('T', ' ') },
          { title: 'PRINCIPAL', value: (row) => row.principal, widthMin: 9 },
          ...(body.entries.some(({ keyId }: Json) => keyId !== null) ? [keyColumn] : []),
          { title: 'ADDRESS', value: ({ address }) => address, optional: true },
          { title: 'OUTCOME', value: (row) => row.outcome },
          { title: 'VERB', value: (row) => row.verb, optional: true },
          { title: 'TARGET', value: (row) => row.target, widthMin: 10 },
          { title: 'WHAT', value: whatOf, widthMin: 26 },
        ],
        'no entries',
      )
    })
}

const keyColumn: TableColumn<Json> = { title: 'KEY', value: ({ keyId }) => keyId, optional: true }

function whatOf({ detail: { event, route } }: Json): string | undefined {
  return event ?? route?.replace(' /api/v1/', ' ')
}
