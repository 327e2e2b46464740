// What existing clients send and read that differs from the names of this API.
import { test } from 'tap'
import { type Ackable, ackOf, apiOf, send } from '../support/http.ts'
import { sharedBroker, unique } from '../support/shared-broker.ts'

const { url } = await sharedBroker()
const api = apiOf(url)

test('an empty namespace or task means absent in configure and pops', async (t) => {
  const queue = unique()
  const answer = await api.post('/configure', { queue, namespace: '', task: '', options: {} })
  t.match(answer, { status: 200, body: { configured: true } })
  t.match(await api.get(`/resources/queues/${queue}`), { body: { namespace: null, task: null } })
  await api.post('/configure', { queue, namespace: 'shop', task: '' })
  await api.post('/configure', { queue, namespace: '', task: 'mail' })
  t.match(
    await api.get(`/resources/queues/${queue}`),
    { body: { namespace: 'shop', task: 'mail' } },
    'an empty name changes nothing',
  )
  await api.push({ queue, payload: 1 }, { queue, payload: 2 })
  t.match(await api.get('/pop?namespace=shop&task=&autoAck=true'), { status: 200 })
  t.match(await api.post('/pop', { namespace: '', task: 'mail', autoAck: true }), { status: 200 })
  t.match(await api.get('/pop?namespace=&task='), {
    status: 400,
    body: { errors: [{ field: 'namespace' }] },
  })
})

test('subscriptionMode takes new-only and from_beginning in pops and subscriptions', async (t) => {
  const queue = unique()
  await api.push({ queue, payload: 1 })
  t.equal((await api.pop(queue, '?consumerGroup=late&subscriptionMode=new-only')).status, 204)
  const all = await api.pop(queue, '?consumerGroup=early&subscriptionMode=from_beginning')
  t.match(all, { status: 200, body: { messages: [{ data: 1 }] } })
  const path = `/consumer-groups/late/queues/${queue}/subscription`
  t.equal((await api.post(path, { subscriptionMode: 'from_beginning' })).status, 200)
  t.equal((await api.pop(queue, '?consumerGroup=late')).status, 200)
  t.match(await api.post(path, { subscriptionMode: 'latest' }), {
    status: 400,
    body: { errors: [{ field: 'subscriptionMode' }] },
  })
})

test('default is another name of the unnamed consumer group', async (t) => {
  const queue = unique()
  await api.push({ queue, payload: 1 }, { queue, payload: 2 })
  const popped = await api.pop(queue, '?consumerGroup=default')
  t.match(popped.body, { consumerGroup: '__QUEUE_MODE__', messages: [{ data: 1 }] })
  const ended = await api.ack(popped.body.messages[0], 'completed', { consumerGroup: 'default' })
  t.equal(ended.status, 200)
  t.match((await api.pop(queue, '?consumerGroup=__QUEUE_MODE__')).body, { messages: [{ data: 2 }] })
  const seek = `/consumer-groups/default/queues/${queue}/seek`
  t.equal((await api.post(seek, { timestamp: '2020-01-01T00:00:00Z' })).status, 200)
  t.match((await api.pop(queue)).body, { messages: [{ data: 1 }] })
  t.match((await api.get(`/resources/queues/${queue}`)).body, {
    groups: [{ consumerGroup: '__QUEUE_MODE__' }],
  })
})

test('namespaces, tasks and the overview count queues and messages', async (t) => {
  const [queue, other] = [unique(), unique()]
  const namespace = unique('space')
  await api.post('/configure', { queue, namespace, task: namespace })
  await api.post('/configure', { queue: other, namespace })
  const partition = 'Default'
  await api.push(
    { queue, partition, payload: 1 },
    { queue, partition, payload: 2 },
    { queue: other, partition, payload: 3 },
  )
  await api.pop(queue)
  const messages = { total: 3, pending: 2, processing: 1 }
  const { namespaces } = (await api.get('/resources/namespaces')).body
  t.match(
    namespaces.filter((one: { namespace: string }) => one.namespace === namespace),
    [{ queues: 2, partitions: 2, messages }],
  )
  const { tasks } = (await api.get('/resources/tasks')).body
  t.match(
    tasks.filter((one: { task: string }) => one.task === namespace),
    [{ queues: 1, partitions: 1, messages: { total: 2, pending: 1 } }],
  )
  const overview = (await api.get('/resources/overview')).body
  t.match(overview, { namespaces: Number, tasks: Number, messages: { total: Number } })
  t.ok(overview.queues >= 2 && overview.messages.total >= 3)
})

test('a group is shown by queue and partition, and where it lags', async (t) => {
  const queue = unique()
  const group = unique('group')
  const partitions = ['a', 'b'].map((partition) => ({ queue, partition, payload: 1 }))
  await api.push(...partitions)
  t.equal((await api.pop(queue, `?consumerGroup=${group}`)).status, 200)
  const shown = await api.get(`/consumer-groups/${group}`)
  t.equal(shown.status, 200)
  const found = shown.body[queue].partitions as { partition: string; offsetLag: number }[]
  t.same(found.map(({ partition }) => partition).sort(), ['a', 'b'])
  t.equal(
    found.reduce((sum, { offsetLag }) => sum + offsetLag, 0),
    1,
  )
  t.match(found, [{ timeLagSeconds: Number, leaseActive: Boolean, lastConsumedAt: /Z$/ }, {}])
  t.equal((await api.get('/consumer-groups/no-such')).status, 404)
  const lagging = (await api.get('/consumer-groups/lagging?minLagSeconds=0')).body
  const mine = lagging.filter((one: { queue_name: string }) => one.queue_name === queue)
  t.match(mine, [{ consumer_group: group, offset_lag: 1, time_lag_seconds: Number }])
  t.same((await api.get('/consumer-groups/lagging')).body, [], 'by default an hour')
  t.equal((await api.get('/consumer-groups/lagging?minLagSeconds=x')).status, 400)
})

test('a group is moved in one partition only', async (t) => {
  const queue = unique()
  await api.push(...['a', 'b'].map((partition) => ({ queue, partition, payload: partition })))
  const query = '?consumerGroup=g&partitions=2&batch=2'
  const { messages } = (await api.pop(queue, query)).body
  t.equal(messages.length, 2)
  const seek = (partition: string, body: object) =>
    api.post(`/consumer-groups/g/queues/${queue}/partitions/${partition}/seek`, body)
  const moved = await seek('a', { timestamp: '2020-01-01T00:00:00Z' })
  t.match(moved, { status: 200, body: { success: true, partition: 'a' } })
  t.match((await api.pop(queue, query)).body.messages, [{ data: 'a' }])
  const [inA, inB] = messages[0].data === 'a' ? messages : [messages[1], messages[0]]
  t.equal((await api.ack(inA)).status, 409, 'its lease in the moved partition is gone')
  t.equal((await api.ack(inB)).status, 200, 'its lease in the other partition is not')
  t.equal((await seek('a', { toEnd: true })).status, 200)
  t.equal((await api.pop(queue, query)).status, 204)
  t.equal((await seek('none', { toEnd: true })).status, 404)
  t.equal((await seek('a', {})).status, 400)
})

test('DELETE of a message removes its dead letters', async (t) => {
  const queue = unique()
  await api.push({ queue, payload: 1 }, { queue, payload: 2 })
  const [dead, alive] = (await api.pop(queue, '?batch=2')).body.messages
  await api.ack(dead, 'dlq')
  const path = `/messages/${dead.partitionId}/${dead.transactionId}`
  t.match(await api.del(path), { status: 200, body: { success: true, deleted: 1 } })
  t.equal((await api.get(`/dlq?queue=${queue}`)).body.total, 0)
  t.equal((await api.del(path)).status, 404)
  t.equal((await api.del(`/messages/${alive.partitionId}/${alive.transactionId}`)).status, 404)
  t.equal((await api.ack(alive)).status, 200)
  t.equal((await api.del('/messages/x/y')).status, 404)
})

test('lists repeat their fields under the names of existing clients', async (t) => {
  const queue = unique()
  await api.push({ queue, payload: 1 })
  const { messages } = (await api.pop(queue, '?consumerGroup=g')).body
  await api.ack(messages[0], 'dlq')
  t.match((await api.get(`/resources/queues/${queue}`)).body, {
    name: queue,
    groups: [{ name: 'g', queueName: queue }],
  })
  t.match((await api.get(`/dlq?queue=${queue}`)).body, { messages: [{ retryCount: 1 }] })
  const { partitionId, transactionId } = messages[0]
  const trace = (await api.post('/traces', { partitionId, transactionId, data: 1 })).body
  t.equal(trace.traceId, trace.id)
})

test('GET /health is GET /ready', async (t) => {
  const [health, ready] = [await send('GET', `${url}/health`), await send('GET', `${url}/ready`)]
  t.equal(health.status, 200)
  t.same(health.body, ready.body)
})

test('the ack status success completes a message, in every kind of ack', async (t) => {
  const queue = unique()
  await api.push(...[1, 2, 3, 4].map((payload) => ({ queue, payload })))
  const take = async () => (await api.pop(queue)).body.messages[0] as Ackable
  t.match(await api.ack(await take(), 'success'), { status: 200, body: [{ success: true }] })
  const listed = { ...ackOf(await take()), status: 'success' }
  t.match(await api.post('/ack/batch', { acknowledgments: [listed] }), {
    body: [{ success: true }],
  })
  const inTransaction = { type: 'ack', ...ackOf(await take()), status: 'success' }
  t.match(await api.post('/transaction', { operations: [inTransaction] }), { status: 200 })
  const withPop = { ...ackOf(await take()), status: 'success' }
  t.match(await api.post(`/pop/queue/${queue}`, { acks: [withPop] }), {
    status: 200,
    body: { acks: [{ success: true }], messages: [] },
  })
  t.match(await api.get(`/messages?queue=${queue}`), {
    body: { messages: Array.from({ length: 4 }, () => ({ status: 'completed' })) },
  })
})

test('extending a lease returns newExpiresAt', async (t) => {
  const queue = unique()
  await api.push({ queue, payload: 1 })
  const { leaseId } = (await api.pop(queue)).body
  const { body } = await api.post(`/lease/${leaseId}/extend`, { seconds: 600 })
  t.ok(Date.parse(body.newExpiresAt) > Date.now() + 500_000)
  t.equal(body.newExpiresAt, body.expiresAt)
})

test('dead letters are kept if either of their two options is true', async (t) => {
  const kept = async (...changes: object[]) => {
    const queue = unique()
    for (const options of changes) {
      t.equal((await api.post('/configure', { queue, options })).status, 200)
    }
    return (await api.get(`/resources/queues/${queue}`)).body.options.deadLetterQueue
  }
  t.equal(await kept({ deadLetterQueue: false, dlqAfterMaxRetries: true }), true)
  t.equal(await kept({ deadLetterQueue: true, dlqAfterMaxRetries: false }), true)
  t.equal(await kept({ deadLetterQueue: false, dlqAfterMaxRetries: false }), false)
  t.equal(await kept({ dlqAfterMaxRetries: true }, { deadLetterQueue: false }), false, 'later wins')
  t.equal(await kept({ deadLetterQueue: false }, { dlqAfterMaxRetries: true }), true)
  t.equal(await kept({ dlqAfterMaxRetries: false }, { deadLetterQueue: null }), true)
  t.equal(await kept({ dlqAfterMaxRetries: false }, { leaseTime: 5 }), false)
})

test('null means absent for the fields that existing clients send as null', async (t) => {
  const queue = unique()
  const place = { namespace: null, task: null }
  t.equal((await api.post('/configure', { queue, ...place, options: {} })).status, 200)
  await api.push({ queue, payload: 1, traceId: null }, { queue, payload: 2 })
  const { messages } = (await api.pop(queue, '?batch=2')).body
  const [first, second] = messages.map(ackOf)
  const nulls = { error: null, consumerGroup: null }
  t.match(await api.post('/ack', { ...first, status: 'completed', ...nulls }), { status: 200 })
  const unfenced = { ...second, leaseId: null, ...nulls }
  const operations = [{ type: 'ack', status: 'completed', ...unfenced }]
  const requiredLeases = [second.leaseId]
  t.match(await api.post('/transaction', { operations, requiredLeases }), { status: 200 })
})
