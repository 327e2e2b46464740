import type { ChaosClient } from '../clients/chaos-client.ts'
import { ackUntilAnswered, consume, workBySdk } from '../clients/consuming.ts'
import { countAround, paced } from '../clients/producing.ts'
import { ackInTransaction, enqueue } from '../clients/sql-calls.ts'
import { clients, type Workload } from './workload.ts'

const queue = 'sql'
const partitionCount = 16
const producerCount = 2
const transactionsPerSecond = 20
const itemsMean = 2
const rollbackShare = 0.2

/**
 * Producers that enqueue in their own transactions, some of them rolled back, and consumers that acknowledge
 * in their own transactions, one of them with a worker of the SDK.
 */
export const sqlProducers: Workload = {
  name: 'sql-producers',
  queues: [{ queue }],
  clients: [
    ...clients(producerCount, 'producer', (client) => {
      const perSecond = (transactionsPerSecond * client.rate) / producerCount
      return paced(client, perSecond, async () => {
        const partition = `q${client.random.below(partitionCount)}`
        const items = Array.from({ length: countAround(client, itemsMean) }, () => ({
          queue,
          partition,
          value: client.newValue(),
        }))
        return await enqueue(client, items, { commits: client.random.next() >= rollbackShare })
      })
    }),
    ...clients(3, 'consumer', (client, number) => {
      if (number === 3) return ackInBySdk(client)
      const raw = client.raw(number)
      return consume(client, raw, { queue, batch: 10, partitions: 4 }, async (messages) => {
        if (number === 1) await ackUntilAnswered(client, raw, messages)
        else for (const message of messages) await ackInTransaction(client, message)
      })
    }),
  ],
}

/** If the transaction was not committed for certain, the handler throws, and the worker ends the attempt. */
function ackInBySdk(client: ChaosClient): Promise<void> {
  return workBySdk(client, { queue }, { concurrency: 4 }, async (message, context) => {
    const outcome = await ackInTransaction(client, message, (sql) => context.ackIn(sql))
    if (outcome !== 'ok') throw new Error(`the transaction ended as ${outcome}`)
  })
}
