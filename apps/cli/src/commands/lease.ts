// Consuming by hand: extends a lease, or releases it. `ack` is in ack.ts.
import { type Command, InvalidArgumentError } from 'commander'
import { segment } from '../api.ts'
import { durationMs } from '../format.ts'
import { sessionOf, verb } from '../verb.ts'

const argument = 'the receipt that pop printed, or the lease id'

export function leaseVerbs(program: Command): void {
  verb(program, 'extend', 'keep what a pop delivered for longer', `rouse extend RECEIPT --for 10m`)
    .argument('<receipt>', argument)
    .requiredOption('--for <duration>', 'from now on; the lease is never shortened', wholeSeconds)
    .action(async (receipt: string, _options: object, command: Command) => {
      const { api, output, options } = sessionOf<{ readonly for: number }>(command)
      const path = `/api/v1/lease/${segment(receipt)}/extend`
      const { body } = await api.post(path, { seconds: options.for })
      if (!output.isHuman) return output.json(body)
      output.line(`the lease ends at ${body.expiresAt}`)
    })
  verb(
    program,
    'release',
    'give back what a pop delivered, without charging an attempt',
    'rouse release RECEIPT',
  )
    .argument('<receipt>', argument)
    .action(async (receipt: string, _options: object, command: Command) => {
      const { api, output } = sessionOf(command)
      const { body } = await api.delete(`/api/v1/lease/${segment(receipt)}`)
      if (!output.isHuman) return output.json(body)
      output.line('released: what the pop still held is ready again')
    })
}

function wholeSeconds(text: string): number {
  const seconds = Math.ceil(durationMs(text) / 1_000)
  if (seconds === 0) throw new InvalidArgumentError('Write a duration of at least a second.')
  return seconds
}
