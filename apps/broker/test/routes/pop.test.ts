import { test } from 'tap'
import { apiOf, send } from '../support/http.ts'
import { sharedBroker, unique } from '../support/shared-broker.ts'

const { url } = await sharedBroker()
const api = apiOf(url)

test('a pop of an unknown queue is 204, and a waiting pop gets its first message', async (t) => {
  const queue = unique()
  const empty = await api.pop(queue)
  t.match(empty, { status: 204, body: undefined })
  const waiting = api.pop(queue, '?wait=true&timeout=5000')
  await api.push({ queue, payload: 'first' })
  t.match(await waiting, { status: 200, body: { messages: [{ data: 'first' }] } })
})

test('the response has the documented shape', async (t) => {
  const queue = unique()
  await api.push({ queue, partition: 'p', payload: { a: 1 }, transactionId: 'tx' })
  const { body } = await api.pop(queue, '?consumerGroup=g')
  const [message] = body.messages
  t.match(message, {
    transactionId: 'tx',
    traceId: null,
    data: { a: 1 },
    createdAt: /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/,
    partition: 'p',
    queue,
    seq: 1,
    leaseId: /^[0-9a-f-]{36}$/,
    receipt: /^[\w-]{48}$/,
    consumerGroup: 'g',
    attempt: 1,
    headers: null,
  })
  const { leaseId, partitionId } = message
  t.match(body, { success: true, queue, consumerGroup: 'g', partition: 'p', leaseId, partitionId })
})

test('names with slashes, spaces and any Unicode work in paths', async (t) => {
  for (const name of ['a/b', 'a%2Fb', 'ü €/😀', '*', '%', 'a?b#c', '...', 'ü'.repeat(127)]) {
    const pushed = await api.push({ queue: name, partition: name, payload: name })
    t.equal(pushed.status, 201, name)
    const encoded = encodeURIComponent(name)
    const popped = await api.get(`/pop/queue/${encoded}/partition/${encoded}?autoAck=true`)
    t.match(popped, { status: 200, body: { queue: name, partition: name } }, name)
  }
})

test('batch and partitions limit the number of messages', async (t) => {
  const queue = unique()
  const items = Array.from({ length: 6 }, (_, n) => ({ queue, partition: `p${n % 3}`, payload: n }))
  await api.push(...items)
  const one = await api.pop(queue, '?batch=10&consumerGroup=one')
  t.equal(one.body.messages.length, 2)
  const all = await api.pop(queue, '?batch=5&partitions=3&consumerGroup=all')
  t.equal(all.body.messages.length, 5)
  const distinct = (field: string) =>
    new Set(all.body.messages.map((one: Record<string, string>) => one[field])).size
  t.same([distinct('leaseId'), distinct('receipt')], [1, 5])
})

test('invalid query values and values beyond a limit are refused', async (t) => {
  for (const query of [
    'batch=0',
    'batch=1001',
    'batch=01',
    'batch=1.5',
    'batch=',
    'batch=%201',
    'batch=1&batch=2',
    'wait=yes',
    'wait=1',
    'wait=true&timeout=300001',
    'timeout=-1',
    'partitions=1001',
    'leaseSeconds=0',
    'consumerGroup=',
    'consumerGroup=.',
    'subscriptionMode=some',
    'subscriptionFrom=yesterday',
    'autoAck=TRUE',
  ]) {
    t.match(await api.pop('q', `?${query}`), { status: 400, body: { retryable: false } }, query)
  }
  t.match(await api.pop('q', '?somethingNew=1'), { status: 400, body: { code: 'unknown_field' } })
})

test('a pop by namespace and task takes from all matching queues', async (t) => {
  const [a, b, namespace] = [unique(), unique(), unique('namespace')]
  await api.post('/configure', { queue: a, namespace, task: 'send' })
  await api.post('/configure', { queue: b, namespace, task: 'other', options: { priority: 9 } })
  await api.push({ queue: a, payload: 'a' }, { queue: b, payload: 'b' })
  const byTask = await api.get(`/pop?namespace=${namespace}&task=send&consumerGroup=x`)
  t.match(byTask.body, { queue: a, messages: [{ data: 'a', queue: a }] })
  const byNamespace = await api.get(`/pop?namespace=${namespace}&consumerGroup=y`)
  t.match(byNamespace.body, { queue: b })
  t.equal((await api.get('/pop')).status, 400)
})

test('a push wakes a pop that waits by namespace', async (t) => {
  const [queue, namespace] = [unique(), unique('namespace')]
  await api.post('/configure', { queue, namespace })
  const waiting = api.get(`/pop?namespace=${namespace}&wait=true&timeout=5000`)
  await api.push({ queue, payload: 1 })
  t.match(await waiting, { status: 200, body: { queue } })
})

test('a waiting pop ends at its deadline with 204 and no body', async (t) => {
  const began = performance.now()
  const { status, body } = await api.pop(unique(), '?wait=true&timeout=300')
  const tookMs = performance.now() - began
  t.match({ status, body }, { status: 204, body: undefined })
  t.ok(tookMs >= 295 && tookMs < 450, `took ${tookMs} ms`)
})

test('with autoAck a message is completed at delivery and has no lease', async (t) => {
  const queue = unique()
  await api.push({ queue, payload: 1 })
  t.match((await api.pop(queue, '?autoAck=true')).body, {
    leaseId: null,
    messages: [{ leaseId: null }],
  })
  const { body } = await api.get(`/resources/queues/${queue}`)
  t.match(body.groups, [{ pending: 0, inFlight: 0 }])
})

test('each group gets every message, and a new group may start at the end', async (t) => {
  const queue = unique()
  await api.push({ queue, payload: 1 })
  t.equal((await api.pop(queue, '?consumerGroup=a')).status, 200)
  t.equal((await api.pop(queue, '?consumerGroup=b')).status, 200)
  t.equal((await api.pop(queue, '?consumerGroup=c&subscriptionMode=new')).status, 204)
  t.equal((await api.pop(queue, '?consumerGroup=d&subscriptionFrom=now')).status, 204)
  t.equal(
    (await api.pop(queue, '?consumerGroup=e&subscriptionFrom=2020-01-01T00:00:00Z')).status,
    200,
  )
})

test('a POST acknowledges and pops in one request', async (t) => {
  const queue = unique()
  await api.push({ queue, payload: 1 }, { queue, payload: 2 })
  const path = `/pop/queue/${queue}`
  const first = await api.post(path, {})
  t.equal(first.body.acks, undefined)
  const [{ transactionId, partitionId, leaseId }] = first.body.messages
  const good = { transactionId, partitionId, leaseId, status: 'completed' }
  const second = await api.post(path, { acks: [good, { ...good, leaseId: 'foreign' }] })
  t.match(second, {
    status: 200,
    body: {
      messages: [{ data: 2 }],
      acks: [
        { index: 0, transactionId, success: true },
        { index: 1, success: false, error: /lease/ },
      ],
    },
  })
  const last = await api.post(path, { acks: [], wait: true, timeout: 50 })
  t.match(last, { status: 200, body: { success: true, messages: [], acks: [] } })
})

test('a POST works without a body, and values in a body are not coerced', async (t) => {
  const path = api.at(`/pop/queue/${unique()}`)
  t.equal((await send('POST', path)).status, 204)
  for (const body of [{ batch: '1' }, { wait: 'true' }, { batch: 1.5 }, { acks: {} }, [], 'x', 1]) {
    t.equal((await send('POST', path, body)).status, 400, JSON.stringify(body))
  }
})

test('a pop of a paused queue is 423 until the queue is resumed', async (t) => {
  const queue = unique()
  await api.push({ queue, payload: 1 })
  t.match(await api.post(`/queues/${queue}/pause`), { status: 200, body: { paused: true } })
  t.match(await api.pop(queue), { status: 423, body: { code: 'queue_paused' } })
  const waiting = api.pop(queue, '?wait=true&timeout=5000')
  t.match(await api.post(`/queues/${queue}/resume`), { status: 200, body: { paused: false } })
  t.equal((await waiting).status, 200)
})

test('a response has at most 16 MiB of payloads, and the remaining messages stay in the queue', async (t) => {
  const queue = unique()
  const payload = 'x'.repeat(1024 * 1024 - 2)
  for (let i = 0; i < 20; i += 1) {
    t.equal((await api.push({ queue, payload })).status, 201)
  }
  const counts: number[] = []
  for (let pops = 0; pops < 3; pops += 1) {
    const { body } = await api.pop(queue, '?batch=1000&autoAck=true')
    counts.push(body?.messages.length ?? 0)
  }
  t.same(counts, [16, 4, 0])
})
