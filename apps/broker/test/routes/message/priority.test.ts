// Priorities over HTTP on two nodes: strict on both, in encrypted queues, with a window buffer and by namespace.
import { randomBytes } from 'node:crypto'
import { seededRandom } from '@rouse/testkit'
import { t as root, type Test, test } from 'tap'
import { startCluster } from '../../support/cluster.ts'
import { apiOf } from '../../support/http.ts'
import { unique } from '../../support/shared-broker.ts'

const cluster = await startCluster(root as unknown as Test, {
  nodes: 2,
  env: { ROUSE_ENCRYPTION_KEY: randomBytes(32).toString('hex') },
})
const apis = cluster.map(({ url }) => apiOf(url))
const [api, other] = apis as [(typeof apis)[0], (typeof apis)[0]]

interface Taken {
  readonly priority: number
  readonly sentAt: number
  readonly answeredAt: number
}

/** Takes this many messages of a queue with 12 consumers at both nodes. The data are the priorities. */
async function takeAll(queue: string, count: number): Promise<Taken[]> {
  const taken: Taken[] = []
  await Promise.all(
    Array.from({ length: 12 }, async (_, n) => {
      const at = n % 2 === 0 ? api : other
      while (taken.length < count) {
        const sentAt = performance.now()
        const { status, body } = await at.pop(queue, '?batch=2&wait=true&timeout=500')
        const answeredAt = performance.now()
        if (status !== 200) continue
        for (const { data } of body.messages) taken.push({ priority: data, sentAt, answeredAt })
      }
    }),
  )
  return taken
}

test('12 consumers at two nodes never get a message while a higher one is ready', async (t) => {
  const queue = unique()
  const random = seededRandom(7)
  const sent = Array.from({ length: 300 }, () => random.below(10))
  for (let i = 0; i < sent.length; i += 60) {
    const items = sent.slice(i, i + 60).map((priority) => ({ queue, payload: priority, priority }))
    t.equal((await (i % 120 === 0 ? api : other).push(...items)).status, 201)
  }
  const taken = await takeAll(queue, sent.length)
  t.equal(taken.length, sent.length)
  // A message whose pop was sent after the response to another one was ready during the whole pop of that one.
  const wrong = taken.flatMap((low) =>
    taken.filter((high) => high.priority > low.priority && high.sentAt > low.answeredAt),
  )
  t.equal(wrong.length, 0)
})

test('a waiter gets the highest priority of a push at the other node, then the next', async (t) => {
  const queue = unique()
  const waiting = other.pop(queue, '?wait=true&timeout=30000')
  const items = [0, 3, 9, 1].map((priority) => ({ queue, payload: priority, priority }))
  await api.push(...items)
  t.match((await waiting).body.messages, [{ data: 9, partition: null }])
  const { body } = await other.pop(queue, '?batch=10&partitions=10')
  t.same(
    body.messages.map(({ data }: { data: number }) => data),
    [3, 1],
  )
  t.match((await api.pop(queue, '?batch=10')).body.messages, [{ data: 0 }])
})

test('an encrypted queue delivers its priorities in order, and shows them', async (t) => {
  const queue = unique()
  await api.post('/configure', { queue, options: { encryptionEnabled: true } })
  const items = [1, 8, 0, 4].map((priority) => ({ queue, payload: { priority }, priority }))
  const { body: pushed } = await api.push(...items)
  t.match((await other.get(`/messages/${pushed[1].id}`)).body, {
    data: { priority: 8 },
    priority: 8,
    partition: null,
  })
  const came: number[] = []
  for (const at of [other, api, other, api]) {
    const [message] = (await at.pop(queue)).body.messages
    came.push(message.data.priority)
    t.equal((await api.ack(message)).status, 200)
  }
  t.same(came, [8, 4, 1, 0])
})

test('a pop by namespace takes the priorities of each queue first, and the queues by their own', async (t) => {
  const [namespace, first, second] = [unique(), unique(), unique()]
  await api.post('/configure', { queue: first, namespace, options: { priority: 5 } })
  await api.post('/configure', { queue: second, namespace })
  await api.push(
    { queue: second, payload: 'second 9', priority: 9 },
    { queue: first, payload: 'first 0' },
    { queue: first, payload: 'first 2', priority: 2 },
    { queue: second, payload: 'second 0' },
  )
  const came: string[] = []
  for (const at of [other, api, other, api]) {
    const { body } = await at.get(`/pop?namespace=${namespace}&batch=1`)
    came.push(body.messages[0].data)
  }
  t.same(came, ['first 2', 'first 0', 'second 9', 'second 0'])
})
