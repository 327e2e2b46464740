import type { Command } from 'commander'
import { CliError } from '../cli-error.ts'
import { sessionOf, verb } from '../verb.ts'

const statuses = ['completed', 'failed', 'retry', 'dlq']

interface Options {
  readonly status: string
}

export function ackVerb(program: Command): void {
  verb(
    program,
    'ack',
    'end what a lease holds',
    `rouse ack LEASE_ID
rouse ack LEASE_ID --status failed`,
  )
    .argument('<leaseId>', 'of any message of the pop: all of them are meant')
    .option('-s, --status <status>', statuses.join(', '), 'completed')
    .action(async (leaseId: string, _options: Options, command: Command) => {
      const { api, output, options } = sessionOf<Options>(command)
      if (!statuses.includes(options.status)) {
        throw new CliError('usage', `--status must be one of ${statuses.join(', ')}`)
      }
      const { body } = await api.post('/api/v1/ack/batch', { leaseId, status: options.status })
      const failed = body.filter(({ success }: { success: boolean }) => !success)
      if (!output.isHuman) output.json(body)
      else
        output.line(`${body.length - failed.length} of ${body.length} ended as ${options.status}`)
      if (failed.length > 0) throw new CliError('server', failed[0].error ?? 'the lease is lost')
    })
}
