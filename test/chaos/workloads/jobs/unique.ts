import { withKey } from '../../checkers/delivery/unique.ts'
import type { ChaosClient } from '../../clients/chaos-client.ts'
import { ackUntilAnswered, consume, workBySdk } from '../../clients/consuming.ts'
import { bySdk, paced } from '../../clients/producing.ts'
import type { RawClient, RawMessage } from '../../clients/raw-client.ts'
import type { Outcome } from '../../history/records.ts'
import { clients, type Workload } from '../workload.ts'

const queue = 'unique'
const keyCount = 12
const partitionCount = 3
const producerCount = 3
const messagesPerSecond = 20
const sendsMax = 3

/**
 * Different messages with one unique key are pushed through different nodes at once, into several partitions.
 * Consumers complete them, or fail, release or abandon them first. One producer and one consumer are the SDK.
 */
export const unique: Workload = {
  name: 'unique',
  queues: [{ queue, ordering: 'none', hasUniqueKeys: true }],
  clients: [
    ...clients(producerCount, 'producer', (client, number) =>
      paced(client, (messagesPerSecond * client.rate) / producerCount, () =>
        number === 1 ? pushBySdk(client) : pushRivals(client),
      ),
    ),
    ...clients(2, 'consumer', (client, number) => {
      if (number === 2) return completeBySdk(client)
      const raw = client.raw(number)
      const pop = { queue, batch: 4, partitions: 3 }
      return consume(client, raw, pop, (messages) => handle(client, raw, messages))
    }),
  ],
}

async function pushRivals(client: ChaosClient): Promise<Outcome> {
  const { random } = client
  const key = `k${random.below(keyCount)}`
  const first = random.below(client.nodeCount)
  const pushes = Array.from({ length: 1 + random.below(sendsMax) }, (_, i) => {
    const v = withKey(client.newValue(), key)
    const partition = `u${random.below(partitionCount)}`
    return client.raw(first + i).push([{ queue, partition, payload: { v }, unique: { key } }])
  })
  const outcomes = (await Promise.all(pushes)).map(({ outcome }) => outcome)
  return outcomes.includes('ok') ? 'ok' : 'unknown'
}

function pushBySdk(client: ChaosClient): Promise<Outcome> {
  const { random } = client
  const key = `k${random.below(keyCount)}`
  const v = withKey(client.newValue(), key)
  const partition = `u${random.below(partitionCount)}`
  return bySdk(client.sdk().queue(queue).push({ v }, { partition, unique: { key } }))
}

function completeBySdk(client: ChaosClient): Promise<void> {
  return workBySdk(client, { queue }, { concurrency: 4 }, async (_, context) => {
    const chance = client.random.next()
    if (chance < 0.1) await context.retry()
    else if (chance < 0.3) throw new Error('an attempt that fails')
  })
}

async function handle(
  client: ChaosClient,
  raw: RawClient,
  messages: readonly RawMessage[],
): Promise<void> {
  const [first] = messages
  const chance = client.random.next()
  if (first !== undefined && chance < 0.1) await raw.release(first)
  else if (chance < 0.13) return
  else await ackUntilAnswered(client, raw, messages, chance < 0.3 ? 'failed' : 'completed')
}
