import type { ChaosClient } from '../clients/chaos-client.ts'
import { ackUntilAnswered, consume } from '../clients/consuming.ts'
import { paced } from '../clients/producing.ts'
import type { RawItem } from '../clients/raw-client.ts'
import type { Outcome } from '../history/records.ts'
import { clients, type Workload } from './workload.ts'

const queue = 'dedup'
const partitionCount = 16
const producerCount = 4
const messagesPerSecond = 60
const sendsMax = 3

/**
 * Every push is sent one to three times through different nodes, concurrently or in turn, and stored once.
 */
export const dedupRetries: Workload = {
  name: 'dedup-retries',
  queues: [{ queue }],
  clients: [
    ...clients(producerCount, 'producer', (client) =>
      paced(client, (messagesPerSecond * client.rate) / producerCount, () => pushOften(client)),
    ),
    ...clients(2, 'consumer', (client, number) => {
      const raw = client.raw(number)
      return consume(client, raw, { queue }, (messages) => ackUntilAnswered(client, raw, messages))
    }),
  ],
}

async function pushOften(client: ChaosClient): Promise<Outcome> {
  const { random } = client
  const v = client.newValue()
  const partition = `d${random.below(partitionCount)}`
  const items: RawItem[] = [{ queue, partition, payload: { v }, transactionId: v }]
  const sends = 1 + random.below(sendsMax)
  const first = random.below(client.nodeCount)
  const send = async (i: number): Promise<Outcome> =>
    (await client.raw(first + i).push(items)).outcome
  if (random.next() < 0.5) {
    const outcomes = await Promise.all(Array.from({ length: sends }, (_, i) => send(i)))
    return outcomes.includes('ok') ? 'ok' : 'unknown'
  }
  let last: Outcome = 'fail'
  for (let i = 0; i < sends; i += 1) last = await send(i)
  return last
}
