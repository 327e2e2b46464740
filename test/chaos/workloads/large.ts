import { randomBytes } from 'node:crypto'
import type { ChaosClient } from '../clients/chaos-client.ts'
import { ackUntilHeard, consume } from '../clients/consuming.ts'
import { paced, pushUntilStored } from '../clients/producing.ts'
import type { RawItem } from '../clients/raw-client.ts'
import { padded } from '../clients/wire-call.ts'
import { clients, type Workload } from './workload.ts'

const queue = 'large'
const partitionCount = 4
const pushesPerSecond = 0.8
/** Characters; a payload may have a MiB, a body four. */
const charactersMin = 1_000
const charactersMax = 1_000_000
const manyShare = 0.15
const many = 3

/**
 * Payloads up to what is permitted, half of them such that nothing can compress them. The nodes of the harness answer with two
 * MiB at most, so that a backlog takes many answers and the largest come alone.
 */
export const large: Workload = {
  name: 'large',
  queues: [{ queue, completedRetention: 1 }],
  clients: [
    ...clients(1, 'producer', (client) => {
      const raw = client.raw()
      return paced(client, pushesPerSecond * client.rate, () => {
        const isMany = client.random.next() < manyShare
        const items = Array.from({ length: isMany ? many : 1 }, () => itemOf(client, isMany))
        return pushUntilStored(client, raw, items)
      })
    }),
    ...clients(2, 'consumer', (client, number) => {
      const raw = client.raw(number)
      return consume(client, raw, { queue, batch: 100, partitions: partitionCount }, (messages) =>
        ackUntilHeard(client, raw, messages),
      )
    }),
  ],
}

function itemOf(client: ChaosClient, isLargest: boolean): RawItem {
  const { random } = client
  const v = client.newValue()
  // Most of them small, as in life.
  const share = isLargest ? 1 : random.next()
  const length = Math.round(charactersMin * (charactersMax / charactersMin) ** share)
  const pad =
    random.next() < 0.5
      ? 'x'.repeat(length)
      : randomBytes(Math.floor((length * 3) / 4)).toString('base64')
  const partition = `l${random.below(partitionCount)}`
  return { queue, partition, payload: { v, ...padded(pad) }, transactionId: v }
}
