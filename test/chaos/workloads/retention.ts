import type { ChaosClient } from '../clients/chaos-client.ts'
import { ackUntilAnswered, consume } from '../clients/consuming.ts'
import { paced, pushUntilStored } from '../clients/producing.ts'
import type { RawClient, RawMessage } from '../clients/raw-client.ts'
import { type ClientSpec, clients, type Workload } from './workload.ts'

const kept = 'kept'
const evicted = 'evicted'
const groups = ['fast', 'slow']
const partitionCount = 16
const keptPerSecond = 12
const evictedPerSecond = 10
const evictedSeconds = 3
const slowMsMax = 1_500
const awayMs = 5_000

/**
 * Removal under load. `kept` removes messages a second after both groups completed them; the slow group,
 * which releases and fails messages, must not miss any. `evicted` also removes messages that were not
 * consumed within three seconds, and its consumers sometimes pause for longer.
 */
export const retention: Workload = {
  name: 'retention',
  queues: [
    { queue: kept, groups, completedRetention: 1 },
    { queue: evicted, completedRetention: 1, retention: evictedSeconds },
  ],
  clients: [
    producerOf(kept, keptPerSecond),
    producerOf(evicted, evictedPerSecond),
    ...clients(2, 'consumer', (client, number) => {
      const raw = client.raw(number)
      const pop = { queue: kept, group: groups[0], partitions: 8 }
      return consume(client, raw, pop, (messages) => ackUntilAnswered(client, raw, messages))
    }).map((spec) => ({ ...spec, name: `fast-${spec.name}` })),
    ...clients(4, 'consumer', (client, number) => {
      const raw = client.raw(number)
      const pop = { queue: kept, group: groups[1], batch: 10, partitions: 3 }
      return consume(client, raw, pop, (messages) => handleSlowly(client, raw, messages))
    }).map((spec) => ({ ...spec, name: `slow-${spec.name}` })),
    ...clients(2, 'consumer', (client, number) => {
      const raw = client.raw(number)
      return consume(client, raw, { queue: evicted, partitions: 8 }, async (messages) => {
        await ackUntilAnswered(client, raw, messages)
        if (client.random.next() < 0.03) await client.pause(awayMs, client.producing)
      })
    }).map((spec) => ({ ...spec, name: `evicted-${spec.name}` })),
  ],
}

function producerOf(queue: string, perSecond: number): ClientSpec {
  return {
    name: `${queue}-p`,
    role: 'producer',
    run: (client) => {
      const raw = client.raw()
      return paced(client, perSecond * client.rate, () => {
        const v = client.newValue()
        const partition = `k${client.random.below(partitionCount)}`
        return pushUntilStored(client, raw, [
          { queue, partition, payload: { v }, transactionId: v },
        ])
      })
    },
  }
}

async function handleSlowly(
  client: ChaosClient,
  raw: RawClient,
  messages: readonly RawMessage[],
): Promise<void> {
  const [first] = messages
  if (first === undefined) return
  const chance = client.random.next()
  await client.pause(client.random.next() * slowMsMax, client.producing)
  if (chance < 0.1) await raw.release(first)
  else await ackUntilAnswered(client, raw, messages, chance < 0.2 ? 'failed' : 'completed')
}
