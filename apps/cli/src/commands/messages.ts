import type { Command } from 'commander'
import { type Json, query } from '../api.ts'
import { nowMs } from '../clock.ts'
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
    'look at messages without taking them',
    'rouse messages orders --status pending',
  )
    .argument('<queue>')
    .option('-p, --partition <name>', 'of this one')
    .option('-s, --status <status>', 'in this state only')
    .option('-n, --limit <count>', 'at most so many', count)
    .option('--cursor <cursor>', 'go on where the last answer ended')
    .action(async (queue: string, _options: Options, command: Command) => {
      const { api, output, options } = sessionOf<Options>(command)
      const { partition, status, cursor, limit } = options
      const { body } = await api.get(
        `/api/v1/messages${query({ queue, partition, status, cursor, limit })}`,
      )
      if (!output.isHuman) return output.json(body)
      const now = nowMs()
      output.table(
        body.messages as readonly Json[],
        [
          { title: 'ID', value: ({ id }) => id },
          { title: 'PARTITION', value: (row) => row.partition },
          { title: 'STATUS', value: (row) => row.status },
          { title: 'AGE', align: 'right', value: ({ createdAt }) => since(createdAt, now) },
          { title: 'DATA', value: ({ data }) => brief(data) },
        ],
        'no such messages',
      )
      if (body.cursor) output.note(`more: --cursor ${body.cursor}`)
    })
}
