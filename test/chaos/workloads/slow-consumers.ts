import type { ChaosClient } from '../clients/chaos-client.ts'
import { consume } from '../clients/consuming.ts'
import { paced, pushUntilStored } from '../clients/producing.ts'
import type { RawClient, RawMessage } from '../clients/raw-client.ts'
import { clients, leaseMs, leaseSeconds, type Workload } from './workload.ts'

const queue = 'slow'
const partitionCount = 32
const messagesPerSecond = 12

/**
 * Consumers that sleep for up to twice the lease and then acknowledge anyway, often too late. Messages of an
 * expired lease are delivered one per pop, so most consumers are quick; otherwise the backlog would only
 * grow.
 */
export const slowConsumers: Workload = {
  name: 'slow-consumers',
  queues: [{ queue }],
  clients: [
    ...clients(1, 'producer', (client) => {
      const raw = client.raw()
      return paced(client, messagesPerSecond * client.rate, () => {
        const v = client.newValue()
        const partition = `s${client.random.below(partitionCount)}`
        const item = { queue, partition, payload: { v }, transactionId: v }
        return pushUntilStored(client, raw, [item])
      })
    }),
    ...clients(24, 'consumer', (client, number) => {
      const raw = client.raw(number)
      const pop = { queue, batch: 5, partitions: 5 }
      return consume(client, raw, pop, (messages) => handleSlowly(client, raw, messages))
    }),
  ],
}

async function handleSlowly(
  client: ChaosClient,
  raw: RawClient,
  messages: readonly RawMessage[],
): Promise<void> {
  const [first] = messages
  if (first === undefined) return
  const { random } = client
  const chance = random.next()
  if (chance < 0.05) {
    await raw.release(first)
    return
  }
  const isSlow = chance > 0.7
  await client.pause(random.next() * leaseMs * (isSlow ? 2 : 0.2), client.consuming)
  if (chance > 0.95) await raw.extend(first, leaseSeconds)
  // Acknowledges one by one, so that the lease may expire in between.
  if (random.next() < 0.2) for (const message of messages) await raw.ack([message])
  else await raw.ack(messages)
}
