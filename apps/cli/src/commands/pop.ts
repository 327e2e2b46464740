import type { Command } from 'commander'
import { query, segment } from '../api.ts'
import { CliError } from '../cli-error.ts'
import { stringifyExact } from '../exact-json.ts'
import { count, durationMs } from '../format.ts'
import { sessionOf, verb } from '../verb.ts'

interface Options {
  readonly ack?: boolean
  readonly wait?: number
  readonly batch: number
  readonly partitions: number
  readonly partition?: string
  readonly group?: string
  readonly lease?: number
}

export function popVerb(program: Command): void {
  verb(
    program,
    'pop',
    'get messages from a queue',
    `rouse pop orders --wait 30 --ack
rouse pop orders -n 10 --group billing --json`,
  )
    .argument('<queue>')
    .option('-a, --ack', 'acknowledge on delivery')
    .option('-w, --wait <seconds>', 'wait this long for a message', durationMs)
    .option('-n, --batch <count>', 'maximum number of messages', count, 1)
    .option('--partitions <count>', 'maximum number of partitions', count, 1)
    .option('-p, --partition <name>', 'only this partition')
    .option('-g, --group <name>', 'consumer group')
    .option('--lease <duration>', 'lease time', durationMs)
    .action(async (queue: string, _options: Options, command: Command) => {
      const { api, output, options } = sessionOf<Options>(command)
      const place =
        options.partition === undefined ? '' : `/partition/${segment(options.partition)}`
      const asked = query({
        batch: options.batch,
        partitions: options.partitions,
        consumerGroup: options.group,
        autoAck: options.ack,
        wait: options.wait === undefined ? undefined : true,
        timeout: options.wait,
        leaseSeconds: options.lease === undefined ? undefined : Math.ceil(options.lease / 1_000),
      })
      const { status, body } = await api.get(
        `/api/v1/pop/queue/${segment(queue)}${place}${asked}`,
        {
          timeoutMs: (options.wait ?? 0) + 30_000,
        },
      )
      if (status === 204) {
        if (!output.isHuman) output.json({ messages: [] })
        throw new CliError('nothing', output.isHuman ? 'no messages' : '')
      }
      if (!output.isHuman) return output.json(body)
      for (const { id, partition, attempt, data, receipt } of body.messages) {
        const place = partition === null ? '' : `  partition ${partition}`
        output.line(`${id}${place}  attempt ${attempt}`)
        output.line(stringifyExact(data, 2))
        if (options.ack !== true) output.note(`acknowledge with: rouse ack ${receipt}`)
      }
      const { length } = body.messages
      if (options.ack !== true && length > 1) {
        output.note(`acknowledge all ${length} with: rouse ack ${body.leaseId} --all`)
      }
    })
}
