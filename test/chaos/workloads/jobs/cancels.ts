import { RouseError } from '@rouse/client'
import type { ChaosClient } from '../../clients/chaos-client.ts'
import { ackUntilAnswered, consume } from '../../clients/consuming.ts'
import { paced } from '../../clients/producing.ts'
import type { RawClient, RawItem } from '../../clients/raw-client.ts'
import type { Outcome } from '../../history/records.ts'
import { type ClientSpec, clients, type Workload } from '../workload.ts'

const inLog = 'cancels'
const scheduled = 'cancels-scheduled'
const partitionCount = 4
const messagesPerSecond = 8
const delayMsMax = 400
const retryMs = 100

/**
 * Half of the messages are cancelled at about the time when they are delivered or become due. None is both
 * cancelled and delivered, and all others are delivered. The SDK cancels half of them. Some pushes are repeated after the
 * cancellation, as by a client whose answer was lost: the repeat is a duplicate.
 */
export const cancels: Workload = {
  name: 'cancels',
  queues: [{ queue: inLog }, { queue: scheduled, ordering: 'none' }],
  clients: [
    producerOf(inLog, () => ({})),
    producerOf(scheduled, (client) => ({ delayMs: 100 + client.random.below(delayMsMax) })),
    ...consumersOf(inLog),
    ...consumersOf(scheduled),
  ],
}

function producerOf(
  queue: string,
  more: (client: ChaosClient) => Pick<RawItem, 'delayMs'>,
): ClientSpec {
  return {
    name: `${queue}-p`,
    role: 'producer',
    run: (client) => {
      const raw = client.raw()
      return paced(client, messagesPerSecond * client.rate, async () => {
        const v = client.newValue()
        const partition = `x${client.random.below(partitionCount)}`
        const item = { queue, partition, payload: { v }, transactionId: v, ...more(client) }
        const id = await pushedId(client, raw, item)
        if (id === undefined) return 'unknown'
        if (client.random.next() < 0.5) return 'ok'
        await client.pause(client.random.below((item.delayMs ?? 20) * 1.5), client.producing)
        const cancelled = await cancelUntilAnswered(client, raw, id)
        if (client.random.next() < 0.25) await pushedId(client, raw, item)
        return cancelled
      })
    },
  }
}

async function pushedId(
  client: ChaosClient,
  raw: RawClient,
  item: RawItem,
): Promise<string | undefined> {
  for (;;) {
    const { outcome, body } = await raw.push([item])
    if (outcome === 'ok') return (body as readonly { readonly id: string }[])[0]?.id
    if (client.producing.aborted) return undefined
    await client.pause(retryMs, client.producing)
  }
}

/** A refusal is an answer, too: the message was delivered. */
async function cancelUntilAnswered(
  client: ChaosClient,
  raw: RawClient,
  id: string,
): Promise<Outcome> {
  for (;;) {
    const { outcome } = client.random.next() < 0.5 ? await raw.cancel(id) : await bySdk(client, id)
    if (outcome !== 'unknown') return 'ok'
    if (client.producing.aborted) return outcome
    await client.pause(retryMs, client.producing)
  }
}

async function bySdk(client: ChaosClient, id: string): Promise<{ readonly outcome: Outcome }> {
  try {
    await client.sdk().messages.cancel(id)
    return { outcome: 'ok' }
  } catch (error) {
    return { outcome: error instanceof RouseError && error.status === 409 ? 'fail' : 'unknown' }
  }
}

function consumersOf(queue: string): ClientSpec[] {
  const specs = clients(1, 'consumer', (client) => {
    const raw = client.raw()
    const pop = { queue, batch: 5, partitions: 3 }
    return consume(client, raw, pop, (messages) => ackUntilAnswered(client, raw, messages))
  })
  return specs.map((spec) => ({ ...spec, name: `${queue}-${spec.name}` }))
}
