import { ackAndFetch } from '../clients/consuming.ts'
import { paced } from '../clients/producing.ts'
import { type ClientSpec, type Workload } from './workload.ts'

/** Pairs of nodes: messages are pushed on the first node, and their waiter is on the second. */
const ways = [
  [0, 1],
  [1, 2],
  [2, 0],
] as const
const messagesPerSecond = 10

/**
 * A message is pushed on one node and its only waiter is on another, so that a wake-up has to cross the
 * cluster.
 */
export const wakes: Workload = {
  name: 'wakes',
  queues: ways.map((way) => ({ queue: queueOf(way), ordering: 'none', isForWakes: true })),
  clients: ways.flatMap(clientsOf),
}

function clientsOf(way: (typeof ways)[number]): ClientSpec[] {
  const [from, to] = way
  const queue = queueOf(way)
  return [
    {
      name: `p${from + 1}`,
      role: 'producer',
      run: (client) => {
        const raw = client.raw(from)
        return paced(client, messagesPerSecond * client.rate, async () => {
          const { outcome } = await raw.push([{ queue, payload: { v: client.newValue() } }])
          // The random pause keeps pushes from synchronizing with other periodic work.
          await client.pause(client.random.below(30), client.producing)
          return outcome
        })
      },
    },
    {
      name: `c${to + 1}`,
      role: 'consumer',
      run: (client) => ackAndFetch(client, client.raw(to), { queue, waitMs: 20_000 }),
    },
  ]
}

function queueOf([from, to]: (typeof ways)[number]): string {
  return `wakes-${from + 1}-${to + 1}`
}
