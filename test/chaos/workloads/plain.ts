import { ackAndFetch, ackUntilAnswered, consume, workBySdk } from '../clients/consuming.ts'
import { bySdk, countAround, paced } from '../clients/producing.ts'
import { type ClientSpec, clients, type Workload } from './workload.ts'

const queue = 'plain'
const pushesPerSecond = 10
const itemsMean = 2.5

/**
 * A queue without order. Half of the clients use plain HTTP without transactionIds, so a push of unknown
 * outcome is not repeated.
 */
export const plain: Workload = {
  name: 'plain',
  queues: [{ queue, ordering: 'none' }],
  clients: [...producers(), ...consumers()],
}

function producers(): ClientSpec[] {
  return clients(4, 'producer', (client, number) => {
    const payloads = (): { v: string }[] =>
      Array.from({ length: countAround(client, itemsMean * Math.max(1, client.rate)) }, () => ({
        v: client.newValue(),
      }))
    if (number % 2 === 0) {
      const pushing = client.sdk().queue(queue)
      return paced(client, pushesPerSecond * Math.min(1, client.rate), () =>
        bySdk(pushing.pushMany(payloads().map((payload) => ({ payload })))),
      )
    }
    const raw = client.raw()
    return paced(client, pushesPerSecond * Math.min(1, client.rate), async () => {
      const items = payloads().map((payload) => ({ queue, payload }))
      return (await raw.push(items)).outcome
    })
  })
}

function consumers(): ClientSpec[] {
  return clients(5, 'consumer', async (client, number) => {
    const raw = client.raw()
    if (number === 1) return await ackAndFetch(client, raw, { queue })
    if (number === 2) return await workBySdk(client, { queue }, { concurrency: 20 })
    await consume(client, raw, { queue, batch: 20 }, (messages) =>
      ackUntilAnswered(client, raw, messages),
    )
  })
}
