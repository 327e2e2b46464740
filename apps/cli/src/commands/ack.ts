import type { Command } from 'commander'
import { CliError } from '../cli-error.ts'
import { sessionOf, verb } from '../verb.ts'

const statuses = ['completed', 'failed', 'retry', 'dlq']

interface Options {
  readonly status: string
  readonly all?: boolean
}

export function ackVerb(program: Command): void {
  verb(
    program,
    'ack',
    'acknowledge a message that pop delivered',
    `rouse ack RECEIPT
rouse ack LEASE_ID --all --status failed`,
  )
    .argument('<receipt>', 'the receipt that pop printed; with --all also the lease id')
    .option('--all', 'acknowledge all messages that the pop still holds')
    .option('-s, --status <status>', statuses.join(', '), 'completed')
    .action(async (receipt: string, _options: Options, command: Command) => {
      const { api, output, options } = sessionOf<Options>(command)
      if (!statuses.includes(options.status)) {
        throw new CliError('usage', `--status must be one of ${statuses.join(', ')}`)
      }
      const { status } = options
      const { body } =
        options.all === true
          ? await api.post('/api/v1/ack/batch', { leaseId: receipt, status })
          : await api.post('/api/v1/ack', { receipt, status })
      const failed = body.filter(({ success }: { success: boolean }) => !success)
      if (!output.isHuman) output.json(body)
      else if (options.all === true) output.line(`all messages that the pop still held: ${status}`)
      else output.line(`${body.length - failed.length} of ${body.length} ${status}`)
      if (failed.length > 0) throw new CliError('server', failed[0].error ?? 'lease lost')
    })
}
