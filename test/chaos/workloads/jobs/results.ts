import type { ChaosClient } from '../../clients/chaos-client.ts'
import { ackUntilAnswered, consume, workBySdk } from '../../clients/consuming.ts'
import { paced, pushUntilStored } from '../../clients/producing.ts'
import type { RawClient, RawMessage } from '../../clients/raw-client.ts'
import { clients, type Workload } from '../workload.ts'

const queue = 'results'
const partitionCount = 16
const messagesPerSecond = 15
const waitedShare = 0.2
const waitMs = 2_000
/** Longer than a run: the audit reads every result. */
const keptSeconds = 86_400

/**
 * Every ack returns the value of its message, some after a report of progress. Some messages are pushed by clients
 * that wait for their end. After the drain every message has its own result. One consumer is a worker of the SDK,
 * whose results are what its handler returns.
 */
export const results: Workload = {
  name: 'results',
  queues: [{ queue, ordering: 'none', completedRetention: keptSeconds, hasResults: true }],
  clients: [
    ...clients(1, 'producer', (client) => {
      const raw = client.raw()
      return paced(client, messagesPerSecond * client.rate, async () => {
        const v = client.newValue()
        const partition = `r${client.random.below(partitionCount)}`
        const item = { queue, partition, payload: { v }, transactionId: v }
        if (client.random.next() >= waitedShare) return pushUntilStored(client, raw, [item])
        const { outcome, body } = await raw.push([item])
        const [stored] = (body as { id: string }[] | undefined) ?? []
        if (stored !== undefined) void raw.awaitEnd(stored.id, waitMs)
        return outcome
      })
    }),
    ...clients(2, 'consumer', (client, number) => {
      if (number === 2) return returnResults(client)
      const raw = client.raw(number)
      return consume(client, raw, { queue, batch: 8, partitions: 4 }, (messages) =>
        handle(client, raw, messages),
      )
    }),
  ],
}

function returnResults(client: ChaosClient): Promise<void> {
  return workBySdk(client, { queue }, { concurrency: 8 }, async ({ data }, context) => {
    if (client.random.next() < 0.2) await context.progress(50)
    return { v: data.v }
  })
}

async function handle(
  client: ChaosClient,
  raw: RawClient,
  messages: readonly RawMessage[],
): Promise<void> {
  const [first] = messages
  if (first !== undefined && client.random.next() < 0.2) await raw.reportProgress(first, 50)
  await ackUntilAnswered(client, raw, messages, 'completed', ({ data }) => ({ v: data.v }))
}
