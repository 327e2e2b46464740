import { type Command, InvalidArgumentError } from 'commander'
import { query, segment } from '../api.ts'
import { CliError } from '../cli-error.ts'
import { stringifyExact } from '../exact-json.ts'
import { count, durationMs } from '../format.ts'
import { noteMissingQueue, noteNewGroup } from '../names.ts'
import { shellLine } from '../shell.ts'
import { sessionOf, verb } from '../verb.ts'

interface Options {
  readonly ack?: boolean
  readonly wait?: number
  readonly batch: number
  readonly partitions: number
  readonly partition?: string
  readonly group?: string
  readonly from: string
  readonly consumer?: string
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
    .option('-w, --wait <duration>', 'wait up to this long for a message', durationMs)
    .option('-n, --batch <count>', 'maximum number of messages', count, 1)
    .option('--partitions <count>', 'maximum number of partitions', count, 1)
    .option('-p, --partition <name>', 'only this partition')
    .option('-g, --group <group>', 'consumer group; default: the unnamed one')
    .option('--from <start>', 'where a new group begins: new, all, or a time', start, 'new')
    .option('--consumer <name>', 'your name, shown with the lease')
    .option('--lease <duration>', 'lease time', durationMs)
    .action(async (queue: string, _options: Options, command: Command) => {
      const { api, output, options } = sessionOf<Options>(command)
      const { group } = options
      if (group !== undefined) await noteNewGroup(queue, group, options.from, api, output)
      const place =
        options.partition === undefined ? '' : `/partition/${segment(options.partition)}`
      const asked = query({
        batch: options.batch,
        partitions: options.partitions,
        consumerGroup: group,
        ...(group === undefined ? {} : beginning(options.from)),
        consumer: options.consumer,
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
        await noteMissingQueue(queue, api, output)
        throw new CliError('nothing', output.isHuman ? 'no messages' : '')
      }
      if (!output.isHuman) return output.json(body)
      for (const { id, partition, attempt, data, receipt } of body.messages) {
        const place = partition === null ? '' : `  partition ${partition}`
        output.line(`${id}${place}  attempt ${attempt}`)
        output.line(stringifyExact(data, 2))
        if (options.ack !== true)
          output.hint('acknowledge with', shellLine('rouse', 'ack', receipt))
      }
      const { length } = body.messages
      if (options.ack !== true && length > 1) {
        output.hint(`acknowledge all ${length} with`, `rouse ack ${body.leaseId} --all`)
      }
    })
}

function start(text: string): string {
  if (text === 'new' || text === 'all') return text
  if (!Number.isNaN(Date.parse(text))) return new Date(text).toISOString()
  throw new InvalidArgumentError('Write new, all, or a time such as 2026-11-17T08:00:00Z.')
}

/** Over HTTP a new group begins with everything that is kept. Here it begins with what comes. */
function beginning(from: string): { subscriptionMode?: string; subscriptionFrom?: string } {
  return from === 'new' || from === 'all' ? { subscriptionMode: from } : { subscriptionFrom: from }
}
