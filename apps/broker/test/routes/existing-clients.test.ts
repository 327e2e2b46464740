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
