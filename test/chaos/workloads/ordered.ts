import { ackAndFetch, ackUntilAnswered, consume, workBySdk } from '../clients/consuming.ts'
import { bySdk, paced, pushUntilStored } from '../clients/producing.ts'
import { type ClientSpec, clients, type Workload } from './workload.ts'

const queue = 'ordered'
const groups = ['left', 'right']
const partitionCount = 64
const producerCount = 4
const pushesPerPartitionAndSecond = 1.5

/**
 * Partitions with one producer each, which sends a push only after the response to the previous one; two
 * groups get everything.
 */
export const ordered: Workload = {
  name: 'ordered',
  queues: [{ queue, groups }],
  clients: [...producers(), ...groups.flatMap(consumersOf)],
}

function producers(): ClientSpec[] {
  return clients(producerCount, 'producer', async (client, number) => {
    const partitions = Array.from({ length: partitionCount }, (_, i) => `o${i}`)
    const own = partitions.filter((_, i) => i % producerCount === number - 1)
    await Promise.all(
      own.map((partition) =>
        paced(client, pushesPerPartitionAndSecond * client.rate, () => push(partition)),
      ),
    )

    async function push(partition: string) {
      const v = client.newValue()
      if (number % 2 === 0) {
        return await bySdk(client.sdk().queue(queue).push({ v }, { partition, dedupeKey: v }))
      }
      const item = { queue, partition, payload: { v }, transactionId: v }
      return await pushUntilStored(client, client.raw(), [item])
    }
  })
}

function consumersOf(group: string): ClientSpec[] {
  const specs = clients(3, 'consumer', async (client, number) => {
    const raw = client.raw()
    const pop = { queue, group, batch: 30, partitions: 16 }
    if (number === 1) return await ackAndFetch(client, raw, pop)
    if (number === 2) return await workBySdk(client, pop, { concurrency: 16 })
    await consume(client, raw, pop, (messages) => ackUntilAnswered(client, raw, messages))
  })
  return specs.map((spec) => ({ ...spec, name: `${group}-${spec.name}` }))
}
