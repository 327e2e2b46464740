import { withPriority } from '../../checkers/order/priority.ts'
import { ackUntilAnswered, consume } from '../../clients/consuming.ts'
import { paced, pushUntilStored } from '../../clients/producing.ts'
import type { RawItem } from '../../clients/raw-client.ts'
import { clients, type Workload } from '../workload.ts'

const queue = 'priority'
const pushesPerSecond = 0.8
const itemsMax = 60
const levelCount = 10
const handlingMsMax = 40

/**
 * Messages without a partition and with every priority are pushed in bursts, and consumers at all nodes take a few
 * at a time. No pop returns a message while one of a higher priority is ready.
 */
export const priority: Workload = {
  name: 'priority',
  queues: [{ queue, ordering: 'keyed', hasPriorities: true }],
  clients: [
    ...clients(1, 'producer', (client) => {
      const raw = client.raw()
      return paced(client, pushesPerSecond * client.rate, () => {
        const items = Array.from({ length: 1 + client.random.below(itemsMax) }, (): RawItem => {
          const level = client.random.below(levelCount)
          const v = withPriority(client.newValue(), level)
          return { queue, payload: { v }, transactionId: v, priority: level }
        })
        return pushUntilStored(client, raw, items)
      })
    }),
    ...clients(4, 'consumer', (client, number) => {
      const raw = client.raw(number)
      return consume(client, raw, { queue, batch: 2, partitions: 1 }, async (messages) => {
        await client.pause(client.random.below(handlingMsMax), client.consuming)
        await ackUntilAnswered(client, raw, messages)
      })
    }),
  ],
}
