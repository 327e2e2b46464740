import type { ChaosClient } from '../clients/chaos-client.ts'
import { ackUntilAnswered, consume } from '../clients/consuming.ts'
import { paced, pushUntilStored } from '../clients/producing.ts'
import type { RawClient, RawMessage } from '../clients/raw-client.ts'
import { clients, type Workload } from './workload.ts'

const queue = 'poison'
const partitionCount = 64
const producerCount = 2
const messagesPerSecond = 30
const failing = '!fails'
const killing = '!kills'

/**
 * A tenth of the messages is poison. Most poison fails in every consumer. The rest acts as if it killed its
 * consumer, which sends no ack for that message and those after it, so they stay leased. Exactly the poison
 * must become dead letters. Few messages kill their consumer, because each of these blocks its lane for four
 * leases.
 */
export const poison: Workload = {
  name: 'poison',
  queues: [{ queue, retryLimit: 3, retryBackoffMs: [0, 200, 400] }],
  clients: [
    ...clients(producerCount, 'producer', (client) => {
      const raw = client.raw()
      return paced(client, (messagesPerSecond * client.rate) / producerCount, () => {
        const chance = client.random.next()
        const v = `${client.newValue()}${chance < 0.09 ? failing : chance < 0.1 ? killing : ''}`
        const partition = `x${client.random.below(partitionCount)}`
        const item = { queue, partition, payload: { v }, transactionId: v }
        return pushUntilStored(client, raw, [item])
      })
    }),
    ...clients(4, 'consumer', (client, number) => {
      const raw = client.raw(number)
      const pop = { queue, batch: 8, partitions: 4 }
      return consume(client, raw, pop, (messages) => handle(client, raw, messages))
    }),
  ],
}

async function handle(
  client: ChaosClient,
  raw: RawClient,
  messages: readonly RawMessage[],
): Promise<void> {
  const fatal = messages.findIndex(({ data }) => data.v.endsWith(killing))
  const handled = fatal < 0 ? messages : messages.slice(0, fatal)
  const bad = handled.filter(({ data }) => data.v.endsWith(failing))
  const good = handled.filter(({ data }) => !data.v.endsWith(failing))
  if (good.length > 0) await ackUntilAnswered(client, raw, good)
  if (bad.length > 0) await ackUntilAnswered(client, raw, bad, 'failed')
}
