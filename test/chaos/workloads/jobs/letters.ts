import type { ChaosClient } from '../../clients/chaos-client.ts'
import { ackUntilAnswered, consume } from '../../clients/consuming.ts'
import { paced, pushUntilStored } from '../../clients/producing.ts'
import type { RawClient, RawMessage } from '../../clients/raw-client.ts'
import { clients, type Workload } from '../workload.ts'

const queue = 'letters'
const target = 'letters-moved'
const partitionCount = 8
const messagesPerSecond = 16
const sick = '!sick'
/** Longer than a run: the audit counts the letters in the log of the target. */
const keptSeconds = 86_400

/**
 * A third of the messages is given up after two attempts: most fail, some are abandoned until their lease
 * expires, some are given up at once. Their queue moves them to another one, which delivers each of them, once.
 */
export const letters: Workload = {
  name: 'letters',
  queues: [
    { queue: target, ordering: 'none', completedRetention: keptSeconds, lettersOf: queue },
    { queue, ordering: 'none', retryLimit: 1, retryBackoffMs: [0], deadLetterTo: target },
  ],
  clients: [
    ...clients(1, 'producer', (client) => {
      const raw = client.raw()
      return paced(client, messagesPerSecond * client.rate, () => {
        const v = `${client.newValue()}${client.random.next() < 1 / 3 ? sick : ''}`
        const partition = `l${client.random.below(partitionCount)}`
        const item = { queue, partition, payload: { v }, transactionId: v }
        return pushUntilStored(client, raw, [item])
      })
    }),
    ...clients(3, 'consumer', (client, number) => {
      const raw = client.raw(number)
      const pop = { queue: number === 3 ? target : queue, batch: 6, partitions: 4 }
      return consume(client, raw, pop, (messages) =>
        number === 3 ? ackUntilAnswered(client, raw, messages) : handle(client, raw, messages),
      )
    }),
  ],
}

async function handle(
  client: ChaosClient,
  raw: RawClient,
  messages: readonly RawMessage[],
): Promise<void> {
  const ill = messages.filter(({ data }) => data.v.endsWith(sick))
  const well = messages.filter(({ data }) => !data.v.endsWith(sick))
  if (well.length > 0) await ackUntilAnswered(client, raw, well)
  if (ill.length === 0) return
  const chance = client.random.next()
  if (chance < 0.15) return
  await ackUntilAnswered(client, raw, ill, chance < 0.3 ? 'dlq' : 'failed')
}
