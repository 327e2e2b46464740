import type { Command } from 'commander'
import { query, segment } from '../api.ts'
import { sessionOf, verb } from '../verb.ts'

interface Options {
  readonly group?: string
}

export function whyVerb(program: Command): void {
  verb(program, 'why', 'explain why nothing is delivered', 'rouse why orders')
    .argument('<queue>')
    .option('-g, --group <name>', 'only this consumer group')
    .action(async (queue: string, _options: Options, command: Command) => {
      const { api, output, options } = sessionOf<Options>(command)
      const asked = query({ consumerGroup: options.group })
      const { body } = await api.get(`/api/v1/queues/${segment(queue)}/why${asked}`)
      if (!output.isHuman) return output.json(body)
      for (const { text } of body.reasons as readonly { text: string }[]) output.line(text)
    })
}
