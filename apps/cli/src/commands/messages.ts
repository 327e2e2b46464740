import type { Command } from 'commander'
import { type Json, query } from '../api.ts'
import { wallMs } from '../clock.ts'
import { brief, count, since } from '../format.ts'
import { sessionOf, verb } from '../verb.ts'

interface Options {
  readonly partition?: string
  readonly status?: string
  readonly cursor?: string
  readonly limit?: number
}

export function messagesVerb(program: Command): void {
  verb(
    program,
    'messages',
    'list messages without taking them',
    'rouse messages orders --status pending',
  )
    .argument('<queue>')
    .option('-p, --partition <name>', 'only this partition')
    .option('-s, --status <status>', 'only this status')
    .option('-n, --limit <count>', 'maximum number', count)
    .option('--cursor <cursor>', 'continue after the page that printed this cursor')
    .action(async (queue: string, _options: Options, command: Command) => {
      const { api, output, options } = sessionOf<Options>(command)
      const { partition, status, cursor, limit } = options
      const { body } = await api.get(
        `/api/v1/messages${query({ queue, partition, status, cursor, limit })}`,
      )
      if (!output.isHuman) return output.json(body)
      const now = wallMs()
      output.table(
        body.messages as readonly Json[],
        [
          { title: 'ID', value: ({ id }) => id },
          { title: 'PARTITION', value: (row) => row.partition },
          { title: 'STATUS', value: (row) => row.status },
          { title: 'AGE', align: 'right', value: ({ createdAt }) => since(createdAt, now) },
          { title: 'DATA', value: ({ data }) => brief(data) },
        ],
        'no matching messages',
      )
      if (body.cursor) output.note(`more: --cursor ${body.cursor}`)
    })
}
