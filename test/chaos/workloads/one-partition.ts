import { ackAndFetch, ackUntilAnswered, consume, workBySdk } from '../clients/consuming.ts'
import { countAround, paced, pushUntilStored } from '../clients/producing.ts'
import { clients, type Workload } from './workload.ts'

const queue = 'one-partition'
const pushesPerSecond = 10
const itemsMean = 3

/** Producers that append to one log concurrently: a queue that reads by position would miss late commits. */
export const onePartition: Workload = {
  name: 'one-partition',
  queues: [{ queue }],
  clients: [
    ...clients(8, 'producer', (client, number) => {
      const raw = client.raw(number % 2 === 0 ? undefined : number)
      return paced(client, pushesPerSecond * Math.min(1, client.rate), () => {
        const items = Array.from(
          { length: countAround(client, itemsMean * Math.max(1, client.rate)) },
          () => {
            const v = client.newValue()
            return { queue, payload: { v }, transactionId: v }
          },
        )
        return pushUntilStored(client, raw, items)
      })
    }),
    ...clients(3, 'consumer', async (client, number) => {
      const raw = client.raw(number)
      if (number === 1) return await ackAndFetch(client, raw, { queue, partitions: 1 })
      if (number === 2) return await workBySdk(client, { queue }, { concurrency: 10, prefetch: 40 })
      await consume(client, raw, { queue, partitions: 1 }, (messages) =>
        ackUntilAnswered(client, raw, messages),
      )
    }),
  ],
}
