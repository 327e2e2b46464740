// The options of single messages over HTTP: retryLimit, retryBackoffMs, ttlMs and priority of a push item.
import { test } from 'tap'
import { untilWaiting } from '../../support/node-state.ts'
import { optionsNode, type Popped } from '../../support/queue-options.ts'

const { node, api, queueWith, take, takeSoon, dataOf, fail, deadIn, nothingYet } =
  await optionsNode()
const { advanceClock } = node.database

async function push(...items: object[]): Promise<string[]> {
  const { status, body } = await api.push(...items)
  if (status !== 201) throw new Error(JSON.stringify(body))
  return body.map(({ id }: { id: string }) => id)
}

const find = async (id: string | undefined) => (await api.get(`/messages/${id}`)).body
const whyOf = async (queue: string, code: string) =>
  (await api.get(`/queues/${queue}/why`)).body.reasons.filter(
    (reason: { code: string }) => reason.code === code,
  )

test('retryLimit and retryBackoffMs of a message replace those of its queue', async (t) => {
  const queue = await queueWith({ retryLimit: 9, retryBackoffMs: [0] })
  const [id] = await push({ queue, payload: 1, retryLimit: 1, retryBackoffMs: 30_000 })
  t.match(await find(id), {
    priority: 0,
    retryLimit: 1,
    retryBackoffMs: [30_000],
    expiresAt: null,
  })
  await fail(await take(queue))
  await nothingYet(t, queue, 'before the delay of the message')
  await advanceClock(30_000)
  const second = await takeSoon(queue)
  t.match(second, [{ attempt: 2 }])
  await fail(second)
  t.equal(await deadIn(queue), 1)
})

test('ttlMs: a message is not delivered later, and there is no dead letter', async (t) => {
  const queue = await queueWith({})
  await take(queue)
  const [late] = await push(
    { queue, payload: 'late', ttlMs: 60_000 },
    { queue, payload: 'delayed', delayMs: 60_000, ttlMs: 60_000 },
    { queue, payload: 'plain' },
  )
  const { createdAt, expiresAt } = await find(late)
  t.equal(Date.parse(expiresAt) - Date.parse(createdAt), 60_000)
  await advanceClock(60_000)
  t.match(await whyOf(queue, 'expired'), [{ count: 1, text: /1 message is too old/ }])
  t.match((await api.get(`/queues/${queue}`)).body, { dead: 0 })
  const came = await takeSoon(queue, '?batch=2')
  t.same(dataOf(came), ['plain'])
  t.match(await find(late), { state: 'completed' })
  t.same(dataOf(await takeSoon(queue)), ['delayed'], 'its time counts from when it is due')
  t.equal(await deadIn(queue), 0)
})

test('priority: higher ones first, which `why` names, and partition is null everywhere', async (t) => {
  const queue = await queueWith({})
  const priorities = [undefined, 2, 9, 0, 2]
  const ids = await push(...priorities.map((priority, i) => ({ queue, payload: i, priority })))
  t.match(await find(ids[2]), { partition: null, priority: 9 })
  const first = await take(queue)
  t.match(first, [{ data: 2, partition: null }])
  t.match(await whyOf(queue, 'priority'), [{ prioritized: 2, topPriority: 2, behind: 2 }])
  t.same(dataOf(await take(queue, '?batch=9')), [1, 4], 'all priorities are one partition')
  t.same(dataOf(await take(queue, '?batch=9')), [0, 3])
  await api.ack(first[0] as Popped)
  const { body } = await api.get(`/messages?queue=${queue}`)
  t.same(
    new Set(body.messages.map((message: { partition: unknown }) => message.partition)),
    new Set([null]),
  )
  t.match((await api.get(`/resources/queues/${queue}`)).body, { partitions: 0 })
})

test('a push with a priority wakes a waiter', async (t) => {
  const queue = await queueWith({})
  const waiting = api.pop(queue, '?wait=true&timeout=20000')
  await untilWaiting(node, queue, 1)
  await push({ queue, payload: 'now', priority: 3 })
  t.match((await waiting).body, { messages: [{ data: 'now' }] })
})

test('a transaction pushes messages with options', async (t) => {
  const queue = await queueWith({})
  const { body } = await api.post('/transaction', {
    operations: [
      { type: 'push', items: [{ queue, payload: 'low' }] },
      { type: 'push', items: [{ queue, payload: 'high', priority: 1, retryLimit: 0 }] },
    ],
  })
  t.match(await find(body.results[1].items[0].id), { priority: 1, retryLimit: 0 })
  const first = await take(queue)
  t.same(dataOf(first), ['high'])
  await fail(first)
  t.equal(await deadIn(queue), 1)
})

test('bad options are 400 with their fields, and nothing is stored', async (t) => {
  const queue = await queueWith({})
  const ordered = await queueWith({ ordering: 'partition' })
  const item = { queue, payload: 1 }
  for (const [bad, field] of [
    [{ priority: 10 }, 'items[1].priority'],
    [{ priority: -1 }, 'items[1].priority'],
    [{ priority: 1.5 }, 'items[1].priority'],
    [{ priority: '1' }, 'items[1].priority'],
    [{ priority: 1, partition: 'p' }, 'items[1].priority'],
    [{ retryLimit: -1 }, 'items[1].retryLimit'],
    [{ retryLimit: 1_001 }, 'items[1].retryLimit'],
    [{ retryBackoffMs: [] }, 'items[1].retryBackoffMs'],
    [{ retryBackoffMs: [-1] }, 'items[1].retryBackoffMs[0]'],
    [{ retryBackoffMs: -1 }, 'items[1].retryBackoffMs'],
    [{ ttlMs: 0 }, 'items[1].ttlMs'],
    [{ priority: 1, queue: ordered }, 'priority'],
  ] as const) {
    const { status, body } = await api.push(item, { ...item, ...bad })
    t.equal(status, 400, JSON.stringify(bad))
    t.match(body.errors, [{ field }])
  }
  t.match(await api.push({ ...item, prio: 1 }), {
    status: 400,
    body: { errors: [{ field: 'items[0].prio', suggestion: 'priority' }] },
  })
  t.match(await api.push({ ...item, priority: 0, partition: 'p', ttlMs: null }), { status: 201 })
  t.same(dataOf(await take(queue, '?batch=9&partitions=9')), [1])
})
