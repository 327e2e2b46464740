import type { ChaosClient } from '../clients/chaos-client.ts'
import { ackUntilAnswered, consume } from '../clients/consuming.ts'
import { paced, pushUntilStored } from '../clients/producing.ts'
import type { RawClient, RawItem, RawMessage } from '../clients/raw-client.ts'
import { type ClientSpec, clients, type Workload } from './workload.ts'

const queues = ['pipe-1', 'pipe-2', 'pipe-3'] as const
const partitionCount = 8
const amountMax = 1_000
const messagesPerSecond = 15

/**
 * Amounts move through three queues: an ack and the pushes that follow from it are one transaction. The first
 * stage splits each amount in two, the second forwards it, the third consumes it. The sum must stay the same.
 */
export const pipeline: Workload = {
  name: 'pipeline',
  queues: queues.map((queue, i) => ({ queue, stage: i + 1 })),
  clients: [...producers(), ...movers('pipe-1', split), ...movers('pipe-2', handOn), ...spenders()],
}

function producers(): ClientSpec[] {
  return clients(1, 'producer', (client) => {
    const raw = client.raw()
    return paced(client, messagesPerSecond * client.rate, () => {
      const v = client.newValue()
      const amount = 2 + client.random.below(amountMax)
      const partition = `m${client.random.below(partitionCount)}`
      const item = { queue: queues[0], partition, payload: { v, amount }, transactionId: v }
      return pushUntilStored(client, raw, [item])
    })
  })
}

/**
 * A transaction of unknown outcome is not repeated: either the message is completed, or it is delivered
 * again.
 */
function movers(queue: string, move: (message: RawMessage, client: ChaosClient) => RawItem[]) {
  const specs = clients(3, 'consumer', (client, number) => {
    const raw: RawClient = client.raw(number)
    return consume(client, raw, { queue, batch: 4, partitions: 4 }, async (messages) => {
      for (const message of messages) await raw.transact(message, move(message, client))
    })
  })
  return specs.map((spec) => ({ ...spec, name: `${queue}-${spec.name}` }))
}

function split(message: RawMessage, { random }: ChaosClient): RawItem[] {
  const { data } = message
  const partition = message.partition ?? undefined
  const { v, amount = 0 } = data
  const part = 1 + random.below(amount - 1)
  return [
    { queue: queues[1], partition, payload: { v: `${v}/1`, amount: part } },
    { queue: queues[1], partition, payload: { v: `${v}/2`, amount: amount - part } },
  ]
}

function handOn(message: RawMessage): RawItem[] {
  const { data } = message
  const partition = message.partition ?? undefined
  return [{ queue: queues[2], partition, payload: { ...data, v: `${data.v}/3` } }]
}

function spenders(): ClientSpec[] {
  const specs = clients(2, 'consumer', (client, number) => {
    const raw = client.raw(number)
    return consume(client, raw, { queue: queues[2] }, (messages) =>
      ackUntilAnswered(client, raw, messages),
    )
  })
  return specs.map((spec) => ({ ...spec, name: `${queues[2]}-${spec.name}` }))
}
