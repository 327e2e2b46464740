import { ackUntilAnswered, consume, workBySdk } from '../clients/consuming.ts'
import { bySdk, paced, pushUntilStored } from '../clients/producing.ts'
import { clients, type Workload } from './workload.ts'

const queue = 'delays'
const partitionCount = 16
const producerCount = 2
const messagesPerSecond = 25
const delayMsMin = 100
const delayMsMax = 5_000

/** Delayed messages: none is delivered early, and none is left behind. */
export const delays: Workload = {
  name: 'delays',
  queues: [{ queue, ordering: 'none' }],
  clients: [
    ...clients(producerCount, 'producer', (client, number) => {
      const { random } = client
      const raw = client.raw()
      return paced(client, (messagesPerSecond * client.rate) / producerCount, () => {
        const v = client.newValue()
        const partition = `t${random.below(partitionCount)}`
        const delayMs = delayMsMin + random.below(delayMsMax - delayMsMin)
        if (number % 2 === 0) {
          const options = { partition, delay: delayMs, dedupeKey: v }
          return bySdk(client.sdk().queue(queue).push({ v }, options))
        }
        const item = { queue, partition, payload: { v }, delayMs, transactionId: v }
        return pushUntilStored(client, raw, [item])
      })
    }),
    ...clients(2, 'consumer', async (client, number) => {
      if (number === 1) return await workBySdk(client, { queue })
      const raw = client.raw()
      await consume(client, raw, { queue }, (messages) => ackUntilAnswered(client, raw, messages))
    }),
  ],
}
