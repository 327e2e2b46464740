import { setTimeout as delay } from 'node:timers/promises'
import type { Command } from 'commander'
import { type Json, query } from '../api.ts'
import { sessionOf, verb } from '../verb.ts'

interface Options {
  readonly partition?: string
  readonly all?: boolean
}

const pollMs = 500

export function tailVerb(program: Command): void {
  verb(
    program,
    'tail',
    'print messages as they arrive, one JSON document per line, without taking them',
    'rouse tail orders',
  )
    .argument('<queue>')
    .option('-p, --partition <name>', 'only this partition')
    .option('--all', 'start with the existing messages')
    .action(async (queue: string, _options: Options, command: Command) => {
      const { api, output, options } = sessionOf<Options>(command)
      const { partition } = options
      let cursor: string | undefined = options.all === true ? undefined : 'end'
      for (;;) {
        const { body } = await api.get(
          `/api/v1/messages${query({ queue, partition, cursor, follow: true })}`,
        )
        for (const message of body.messages as readonly Json[]) output.json(message)
        cursor = body.cursor ?? cursor
        if (body.messages.length === 0) await delay(pollMs)
      }
    })
}
