import { withPriority } from '../../checkers/order/priority.ts'
import { ackUntilAnswered, consume } from '../../clients/consuming.ts'
import { bySdk, paced, pushUntilStored } from '../../clients/producing.ts'
import { clients, type Workload } from '../workload.ts'

const queue = 'priority'
const pushesPerSecond = 0.4
const itemsMax = 60
const levelCount = 10
const handlingMsMax = 40

/**
 * Messages without a partition and with every priority are pushed in bursts, and consumers at all nodes take a few
 * at a time. One of two producers is the SDK. No pop returns a message while one of a higher priority is ready.
 */
export const priority: Workload = {
  name: 'priority',
  queues: [{ queue, ordering: 'keyed', hasPriorities: true }],
  clients: [
    ...clients(2, 'producer', (client, number) => {
      const raw = client.raw()
      const sdk = client.sdk().queue(queue)
      return paced(client, pushesPerSecond * client.rate, () => {
        const items = Array.from({ length: 1 + client.random.below(itemsMax) }, () => {
          const level = client.random.below(levelCount)
          return { payload: { v: withPriority(client.newValue(), level) }, priority: level }
        })
        if (number === 2) return bySdk(sdk.pushMany(items))
        const named = items.map((item) => ({ ...item, queue, transactionId: item.payload.v }))
        return pushUntilStored(client, raw, named)
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
