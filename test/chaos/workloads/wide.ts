import { ackAndFetch, ackUntilAnswered, consume } from '../clients/consuming.ts'
import { countAround, paced, pushUntilStored } from '../clients/producing.ts'
import type { RawItem } from '../clients/raw-client.ts'
import { clients, type Workload } from './workload.ts'

const namespace = 'wide'
const [odd, even] = ['wide-odd', 'wide-even'] as const
const queues = ['wide-1', 'wide-2', 'wide-3'] as const
const partitionCount = 150
const pushesPerSecond = 1.5
const itemsMean = 20

/**
 * Many partitions of several queues in one response: pops by namespace and by task, and pushes to all queues
 * at once.
 */
export const wide: Workload = {
  name: 'wide',
  queues: queues.map((queue, i) => ({ queue, namespace, task: i % 2 === 0 ? odd : even })),
  clients: [
    ...clients(1, 'producer', (client) => {
      const raw = client.raw()
      return paced(client, pushesPerSecond * client.rate, () => {
        const items = Array.from({ length: countAround(client, itemsMean) }, (): RawItem => {
          const v = client.newValue()
          const queue = queues[client.random.below(queues.length)] ?? queues[0]
          const partition = `w${client.random.below(partitionCount)}`
          return { queue, partition, payload: { v }, transactionId: v }
        })
        return pushUntilStored(client, raw, items)
      })
    }),
    ...clients(4, 'consumer', async (client, number) => {
      const raw = client.raw(number)
      const all = { batch: 1_000, partitions: 500 }
      if (number === 1) return await ackAndFetch(client, raw, { namespace, ...all })
      const pop =
        number === 2
          ? { namespace, ...all }
          : number === 3
            ? { task: odd, ...all }
            : { queue: queues[1], ...all }
      await consume(client, raw, pop, (messages) => ackUntilAnswered(client, raw, messages))
    }),
  ],
}
