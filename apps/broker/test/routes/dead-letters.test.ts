// Listing, redriving and deleting dead letters over HTTP.
import { eventually, testDatabase } from '@rouse/testkit'
import { test } from 'tap'
import { startBroker } from '../support/broker.ts'
import { apiOf } from '../support/http.ts'
import { sharedBroker, unique } from '../support/shared-broker.ts'

const node = await sharedBroker()
const api = apiOf(node.url)

type Letter = { id: string; messageId: string; transactionId: string; data: number }

/** Pushes payloads and dead-letters each with the error code that `codeOf` returns. */
async function bury(
  queue: string,
  payloads: readonly unknown[],
  codeOf: (i: number) => string = () => 'E',
  at = api,
): Promise<void> {
  const partitionOf = (i: number) => `p${i % 2}`
  await at.push(...payloads.map((payload, i) => ({ queue, partition: partitionOf(i), payload })))
  for (const i of payloads.keys()) {
    const { body } = await at.pop(queue, `/partition/${partitionOf(i)}`)
    const more = { error: `because ${codeOf(i)}`, errorCode: codeOf(i) }
    await at.ack(body.messages[0], 'dlq', more)
  }
}

async function redriven(id: string, at = api) {
  return eventually(
    async () => {
      const { body } = await at.get(`/dlq/redrive/${id}`)
      return body.state === 'running' ? undefined : body
    },
    { timeoutMs: 20_000 },
  )
}

test('a dead letter shows the message, the error and every attempt', async (t) => {
  const queue = unique()
  await api.post('/configure', { queue, options: { retryLimit: 1, retryBackoffMs: [0] } })
  await api.push({
    queue,
    partition: 'p',
    payload: { a: 1 },
    transactionId: 't1',
    headers: { h: 1 },
  })
  for (const errorCode of ['first', 'second']) {
    const { body } = await api.pop(queue, '?wait=true&timeout=5000')
    await api.ack(body.messages[0], 'failed', { error: `${errorCode} error`, errorCode })
  }
  const answer = await api.get(`/dlq?queue=${queue}`)
  t.match(answer, {
    status: 200,
    body: {
      total: 1,
      messages: [
        {
          id: /^\d+$/,
          messageId: /^[0-9a-f-]{36}$/,
          transactionId: 't1',
          partition: 'p',
          partitionId: /^\d+$/,
          queue,
          consumerGroup: '__QUEUE_MODE__',
          data: { a: 1 },
          headers: { h: 1 },
          errorCode: 'second',
          errorMessage: 'second error',
          attempts: 2,
          createdAt: /Z$/,
          failedAt: /Z$/,
          history: [
            { attempt: 1, outcome: 'failed', errorCode: 'first', errorMessage: 'first error' },
            { attempt: 2, outcome: 'failed', errorCode: 'second', endedAt: /Z$/, holder: String },
          ],
        },
      ],
    },
  })
})

test('the payload of a dead letter keeps every digit', async (t) => {
  const queue = unique()
  const text = `{"items":[{"queue":"${queue}","payload":{"n":12345678901234567890.123,"__proto__":1}}]}`
  await fetch(api.at('/push'), {
    method: 'POST',
    body: text,
    headers: { 'content-type': 'application/json' },
  })
  const { body } = await api.pop(queue)
  await api.ack(body.messages[0], 'dlq')
  const answer = await (await fetch(api.at(`/dlq?queue=${queue}`))).text()
  t.match(answer, '"data":{"n":12345678901234567890.123,"__proto__":1}')
})

test('dead letters are listed newest first, in pages, by group and by error', async (t) => {
  const queue = unique()
  await bury(queue, [0, 1, 2, 3], (i) => (i < 3 ? 'A' : 'B'))
  const list = async (query: string) => {
    const { body } = await api.get(`/dlq?queue=${queue}&${query}`)
    return [body.total, body.messages.map(({ data }: Letter) => data)]
  }
  t.same(await list('limit=2'), [4, [3, 2]])
  t.same(await list('limit=2&offset=2'), [4, [1, 0]])
  t.same(await list('offset=9'), [4, []], 'past the end the total is still returned')
  t.same(await list('errorCode=A'), [3, [2, 1, 0]])
  t.same(await list('partition=p1'), [2, [3, 1]])
  t.same(await list('consumerGroup=other'), [0, []])
  t.match((await api.get(`/dlq/groups?queue=${queue}`)).body, {
    groups: [
      { errorCode: 'A', errorMessage: 'because A', count: 3, queue, lastFailedAt: /Z$/ },
      { errorCode: 'B', count: 1 },
    ],
  })
  for (const query of ['limit=0', 'limit=1001', 'offset=-1', 'queue=', 'errorCode=%00']) {
    t.equal((await api.get(`/dlq?${query}`)).status, 400, query)
  }
})

test('a redrive redelivers dead letters in their own partition, with attempts starting at 1', async (t) => {
  const queue = unique()
  await bury(queue, [0, 1, 2, 3])
  const started = await api.post('/dlq/redrive', { queue })
  t.match(started, { status: 202, body: { queue, total: 4, rate: null, id: String } })
  t.match(await redriven(started.body.id), { state: 'done', moved: 4, total: 4 })
  t.equal((await api.get(`/dlq?queue=${queue}`)).body.total, 0)
  const seen = new Map<string, number[]>()
  for (let i = 0; i < 4; i += 1) {
    const [message] = (await api.pop(queue)).body.messages
    t.equal(message.attempt, 1)
    seen.set(message.partition, [...(seen.get(message.partition) ?? []), message.data])
    await api.ack(message)
  }
  t.same(seen.get('p0'), [0, 2])
  t.same(seen.get('p1'), [1, 3])
})

test('a redrive wakes a waiting pop', async (t) => {
  const queue = unique()
  await bury(queue, [7])
  const popped = api.pop(queue, '?wait=true&timeout=20000')
  await api.post('/dlq/redrive', { queue })
  t.match((await popped).body, { messages: [{ data: 7, attempt: 1 }] })
})

test('a redrive moves the dead letters that match its filter, and a dry run moves none', async (t) => {
  const queue = unique()
  await bury(queue, [0, 1, 2, 3], (i) => (i % 2 === 0 ? 'even' : 'odd'))
  const left = async () => (await api.get(`/dlq?queue=${queue}`)).body.messages as Letter[]
  t.match(await api.post('/dlq/redrive', { queue, where: { errorCode: 'odd' }, dryRun: true }), {
    status: 200,
    body: {
      dryRun: true,
      total: 2,
      lanes: [{ partition: 'p1', consumerGroup: '__QUEUE_MODE__', count: 2 }],
    },
  })
  const [last, , , first] = await left()
  const ids = [last?.id, first?.messageId]
  t.match(await redriven((await api.post('/dlq/redrive', { queue, where: { ids } })).body.id), {
    moved: 2,
  })
  t.same(
    (await left()).map(({ data }) => data),
    [2, 1],
  )
  const transactionId = (await left())[0]?.transactionId
  t.match(await api.post('/dlq/redrive', { queue, where: { transactionId }, dryRun: true }), {
    body: { total: 1 },
  })
  const where = { errorCode: 'odd', partition: 'p1', consumerGroup: '__QUEUE_MODE__' }
  t.match(await redriven((await api.post('/dlq/redrive', { queue, where })).body.id), { moved: 1 })
  t.same(
    (await left()).map(({ data }) => data),
    [2],
  )
  t.match((await api.post('/dlq/redrive', { queue, where })).body, { state: 'done', total: 0 })
})

test('a redrive keeps to its rate', async (t) => {
  const queue = unique()
  await bury(
    queue,
    Array.from({ length: 12 }, (_, i) => i),
  )
  const { body } = await api.post('/dlq/redrive', { queue, rate: 10 })
  t.match(body, { state: 'running', rate: 10 })
  const { moved, startedAt, updatedAt } = await redriven(body.id)
  t.equal(moved, 12)
  const tookMs = Date.parse(updatedAt) - Date.parse(startedAt)
  t.ok(tookMs >= 1_100, `the twelfth is due after 1.1 s; it took ${tookMs} ms`)
  t.ok(tookMs < 8_000, `it took ${tookMs} ms`)
})

test('a message that fails again during a redrive is not moved again by it', async (t) => {
  const queue = unique()
  await bury(queue, [0, 1, 2, 3, 4, 5])
  const { body } = await api.post('/dlq/redrive', { queue, rate: 10 })
  const done = redriven(body.id)
  for (let again = 0; again < 6; again += 1) {
    const popped = await api.pop(queue, '?wait=true&timeout=10000')
    await api.ack(popped.body.messages[0], 'dlq')
  }
  t.match(await done, { state: 'done', moved: 6, total: 6 })
  t.equal((await api.get(`/dlq?queue=${queue}`)).body.total, 6)
})

test('a cancelled redrive leaves the dead letters that it has not moved', async (t) => {
  const queue = unique()
  await bury(queue, [0, 1, 2])
  const { body } = await api.post('/dlq/redrive', { queue, rate: 1 })
  t.match(await api.del(`/dlq/redrive/${body.id}`), { status: 200, body: { state: 'cancelled' } })
  const { moved } = (await api.get(`/dlq/redrive/${body.id}`)).body
  t.ok(moved < 3)
  t.equal((await api.get(`/dlq?queue=${queue}`)).body.total, 3 - moved)
  for (const id of ['nonsense', '00000000-0000-4000-8000-000000000000']) {
    t.equal((await api.get(`/dlq/redrive/${id}`)).status, 404)
    t.equal((await api.del(`/dlq/redrive/${id}`)).status, 404)
  }
})

test('a redrive continues on another node when its own is killed', async (t) => {
  const database = await testDatabase(t, { instrumented: false })
  const [first, second] = [await startBroker(t, { database }), await startBroker(t, { database })]
  const queue = unique()
  await bury(
    queue,
    Array.from({ length: 20 }, (_, i) => i),
    undefined,
    apiOf(first.url),
  )
  const { body } = await apiOf(first.url).post('/dlq/redrive', { queue, rate: 10 })
  const other = apiOf(second.url)
  await eventually(async () => (await other.get(`/dlq/redrive/${body.id}`)).body.moved > 0)
  first.child.kill('SIGKILL')
  t.match(await redriven(body.id, other), { state: 'done', moved: 20 })
  const popped = await other.pop(queue, '?batch=30&partitions=2&autoAck=true')
  t.ok(popped.body.messages.length > 0)
})

test('dead letters are deleted by filter, and the queue is required', async (t) => {
  const queue = unique()
  await bury(queue, [0, 1, 2], (i) => `E${i}`)
  t.match(await api.del(`/dlq?queue=${queue}&errorCode=E1`), { status: 200, body: { deleted: 1 } })
  t.equal((await api.get(`/dlq?queue=${queue}`)).body.total, 2)
  t.match(await api.del('/dlq'), { status: 400 })
  t.match(await api.del(`/dlq?queue=${queue}`), { status: 200, body: { queue, deleted: 2 } })
  t.equal((await api.get(`/dlq?queue=${queue}`)).body.total, 0)
})

test('an invalid redrive is refused', async (t) => {
  const queue = unique()
  t.equal((await api.post('/dlq/redrive', { queue })).status, 404)
  t.equal((await api.post('/dlq/redrive', { queue, dryRun: true })).status, 404)
  t.equal((await api.del(`/dlq?queue=${queue}`)).status, 404)
  for (const more of [
    { rate: 0 },
    { rate: 1.5 },
    { where: { ids: ['x'] } },
    { where: 1 },
    { where: { x: 1 } },
  ]) {
    t.equal((await api.post('/dlq/redrive', { queue, ...more })).status, 400, JSON.stringify(more))
  }
  t.equal((await api.post('/dlq/redrive', {})).status, 400)
})
