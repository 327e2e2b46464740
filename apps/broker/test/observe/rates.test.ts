// Rates of queues: what happens on any node is seen on every node, less than two seconds later.
import { eventually, testDatabase } from '@rouse/testkit'
import { test } from 'tap'
import { startCluster, startNode } from '../support/cluster.ts'
import { ackOf, apiOf } from '../support/http.ts'
import { sqlUser } from '../support/sql-user.ts'

const env = { ROUSE_WORKERS: '2' }
/** Rates are at most this old. The rest is for a busy machine. */
const patience = { timeoutMs: 2_000 + 3_000 }

interface Rates {
  readonly pushedPerSecond: number
  readonly completedPerSecond: number
}

test('rates are summed over nodes, and every node shows them', async (t) => {
  const cluster = await startCluster(t, { nodes: 2, env })
  const [one, two] = cluster.map(({ url }) => apiOf(url)) as [Api, Api]
  const items = Array.from({ length: 50 }, (_, n) => ({ queue: 'jobs', payload: n }))
  await one.push(...items)
  await two.push(...items)
  // Popped on one node and acknowledged on the other, which has never seen the partition.
  const { messages } = (await one.pop('jobs', '?batch=40')).body
  await two.post('/ack/batch', { acknowledgments: messages.map(ackOf) })
  await two.pop('other', '?batch=10')
  for (const api of [one, two]) {
    const shown = async (): Promise<boolean> => {
      const { pushedPerSecond, completedPerSecond } = await ratesOf(api, 'jobs')
      return pushedPerSecond === 10 && completedPerSecond === 4
    }
    t.ok(await eventually(shown, patience), 'the means of ten seconds')
    const { body } = await api.get('/queues')
    t.match(body.queues, [{ queue: 'jobs', pushedPerSecond: 10, completedPerSecond: 4 }])
  }
})

test('messages of SQL producers, of schedules and with a delay count when they enter the queue', async (t) => {
  const node = await startNode(t, 0, { env })
  const api = apiOf(node.url)
  const producer = await sqlUser(t, node.database.url)
  await api.push({ queue: 'jobs', payload: 1, delayMs: 1_500 })
  await producer.query(`select rouse.enqueue('jobs', '1') from generate_series(1, 9)`)
  const shown = async () => (await ratesOf(api, 'jobs')).pushedPerSecond
  t.ok(await eventually(async () => (await shown()) === 1, { timeoutMs: 10_000 }))
})

test('a restarted node shows the figures at once, and rates from its start', async (t) => {
  const database = await testDatabase(t)
  const before = await startNode(t, 0, { database, env })
  await apiOf(before.url).push({ queue: 'jobs', payload: 1 }, { queue: 'jobs', payload: 2 })
  await before.stop()
  const api = apiOf((await startNode(t, 0, { database, env })).url)
  const [queue] = (await api.get('/queues')).body.queues
  t.match(queue, { queue: 'jobs', ready: 2, pushedPerSecond: 0, options: { leaseTime: 300 } })
  await api.pop('jobs', '?autoAck=true&batch=2')
  const shown = async () => (await ratesOf(api, 'jobs')).completedPerSecond
  t.ok(await eventually(async () => (await shown()) === 0.2, patience))
})

type Api = ReturnType<typeof apiOf>

async function ratesOf(api: Api, queue: string): Promise<Rates> {
  return (await api.get(`/queues/${queue}`)).body as Rates
}
