import { randomBytes } from 'node:crypto'
import type { ChaosClient } from '../clients/chaos-client.ts'
import { ackUntilAnswered, consume } from '../clients/consuming.ts'
import { paced, pushUntilStored } from '../clients/producing.ts'
import type { RawItem } from '../clients/raw-client.ts'
import { padded } from '../clients/wire-call.ts'
import { clients, type Workload } from './workload.ts'

const queue = 'large'
const partitionCount = 4
const pushesPerSecond = 0.8
/** The length of a payload in characters; the limit is 1 MiB for a payload and 4 MiB for a request body. */
const charactersMin = 1_000
const charactersMax = 1_000_000
const manyShare = 0.15
const many = 3

/**
 * Payloads up to the limit, half of them incompressible. The nodes of the harness limit a response to 2 MiB,
 * so that a backlog takes many responses and the largest messages come alone.
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
        ackUntilAnswered(client, raw, messages),
      )
    }),
  ],
}

function itemOf(client: ChaosClient, isLargest: boolean): RawItem {
  const { random } = client
  const v = client.newValue()
  // Most payloads are small.
  const share = isLargest ? 1 : random.next()
  const length = Math.round(charactersMin * (charactersMax / charactersMin) ** share)
  const pad =
    random.next() < 0.5
      ? 'x'.repeat(length)
      : randomBytes(Math.floor((length * 3) / 4)).toString('base64')
  const partition = `l${random.below(partitionCount)}`
  return { queue, partition, payload: { v, ...padded(pad) }, transactionId: v }
}
