import type { ChaosClient } from '../clients/chaos-client.ts'
import { ackUntilAnswered, consume } from '../clients/consuming.ts'
import { paced, pushUntilStored } from '../clients/producing.ts'
import { type ClientSpec, clients, type Workload } from './workload.ts'

const purged = 'purged'
const sought = 'sought'
const steady = 'steady'
const moved = 'moved'
const partitionCount = 8
const messagesPerSecond = 12
const purgeMs = 2_500
const seekMs = 3_500
const backMsMax = 4_000
const lastBackMs = 5_000
const seekTriesMax = 50
const retryMs = 200

/**
 * An operator purges one queue repeatedly. Another operator moves one group of a second queue forward and
 * back, which must not affect the other group of that queue. The last seek moves the group back, so that the
 * messages from there on must be delivered again.
 */
export const purge: Workload = {
  name: 'purge',
  queues: [{ queue: purged }, { queue: sought, groups: [steady, moved] }],
  clients: [
    producerOf(purged),
    producerOf(sought),
    { name: 'purger', role: 'producer', run: purgeOften },
    { name: 'seeker', role: 'producer', run: seekOften },
    ...consumersOf(purged, undefined),
    ...consumersOf(sought, steady),
    ...consumersOf(sought, moved),
  ],
}

function producerOf(queue: string): ClientSpec {
  return {
    name: `${queue}-p`,
    role: 'producer',
    run: (client) => {
      const raw = client.raw()
      return paced(client, messagesPerSecond * client.rate, () => {
        const v = client.newValue()
        const partition = `g${client.random.below(partitionCount)}`
        return pushUntilStored(client, raw, [
          { queue, partition, payload: { v }, transactionId: v },
        ])
      })
    },
  }
}

function consumersOf(queue: string, group: string | undefined): ClientSpec[] {
  const specs = clients(2, 'consumer', (client, number) => {
    const raw = client.raw(number)
    const pop = { queue, group, batch: 5, partitions: 3 }
    return consume(client, raw, pop, async (messages) => {
      // The pause keeps messages leased, so that some are leased when the operator acts.
      await client.pause(client.random.below(300), client.producing)
      await ackUntilAnswered(client, raw, messages)
    })
  })
  return specs.map((spec) => ({ ...spec, name: `${queue}-${group ?? 'all'}-${spec.name}` }))
}

async function purgeOften(client: ChaosClient): Promise<void> {
  const raw = client.raw()
  while (!client.producing.aborted) {
    await client.pause(purgeMs / 2 + client.random.below(purgeMs), client.producing)
    if (!client.producing.aborted) await raw.purge(purged)
  }
}

async function seekOften(client: ChaosClient): Promise<void> {
  const raw = client.raw()
  const back = (ms: number): Date => new Date(Date.now() - ms)
  while (!client.producing.aborted) {
    await client.pause(seekMs / 2 + client.random.below(seekMs), client.producing)
    if (client.producing.aborted) break
    const isBack = client.random.next() < 0.6
    await raw.seek(sought, moved, isBack ? back(client.random.below(backMsMax)) : undefined)
  }
  for (let tries = 0; tries < seekTriesMax; tries += 1) {
    if ((await raw.seek(sought, moved, back(lastBackMs))).outcome === 'ok') return
    await client.pause(retryMs, client.consuming)
  }
}
