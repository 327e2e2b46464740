import { eventually } from '@rouse/testkit'
import { test } from 'tap'
import { apiOf } from '../support/http.ts'
import { sharedBroker, unique } from '../support/shared-broker.ts'
import { sqlUser } from '../support/sql-user.ts'

const node = await sharedBroker({ env: { ROUSE_DEFAULT_LEASE_TIME: '77' } })
const { url } = node
const api = apiOf(url)

test('configure merges options, returns all of them, and uses the defaults of the cluster', async (t) => {
  const queue = unique()
  const first = await api.post('/configure', { queue, options: { retryLimit: 9 } })
  t.match(first, {
    status: 200,
    body: { configured: true, queueId: Number, options: { retryLimit: 9, leaseTime: 77 } },
  })
  const second = await api.post('/configure', { queue, options: { leaseTime: 5 } })
  t.match(second.body, { queueId: first.body.queueId, options: { retryLimit: 9, leaseTime: 5 } })
  const third = await api.post('/configure', { queue, options: { retryLimit: null } })
  t.match(third.body, { options: { retryLimit: 3, leaseTime: 5 } })
  t.match((await api.post('/configure', { queue })).body, { options: { leaseTime: 5 } })
})

test('the error for an unknown option or an invalid value names the option', async (t) => {
  const queue = unique()
  t.match(await api.post('/configure', { queue, options: { leaseTme: 1 } }), {
    status: 400,
    body: { code: 'unknown_option', errors: [{ field: 'leaseTme' }] },
  })
  t.match(await api.post('/configure', { queue, options: { leaseTime: '1' } }), {
    status: 400,
    body: { code: 'invalid_option', errors: [{ field: 'leaseTime' }] },
  })
  for (const body of [{}, { queue: '' }, { queue, options: [] }, { queue, namespace: '\u0001' }]) {
    t.equal((await api.post('/configure', body)).status, 400, JSON.stringify(body))
  }
  t.equal((await api.get(`/resources/queues/${queue}`)).status, 404)
})

test('queues are listed and shown with their messages and groups', async (t) => {
  const queue = `${unique()}/with slash`
  await api.push(
    { queue, partition: 'Default', payload: 1 },
    { queue, partition: 'p', payload: 2, delayMs: 60_000 },
  )
  await api.pop(queue, '?consumerGroup=g')
  const path = `/resources/queues/${encodeURIComponent(queue)}`
  const group = { consumerGroup: 'g', queue, pending: 0, inFlight: 1, lastSeenAt: /Z$/ }
  const expected = {
    queue,
    paused: false,
    partitions: 2,
    messages: 1,
    scheduled: 1,
    groups: [group],
  }
  t.match(await api.get(path), { status: 200, body: { ...expected, options: { leaseTime: 77 } } })
  const { body } = await api.get('/resources/queues')
  t.match(
    body.queues.find((one: { queue: string }) => one.queue === queue),
    expected,
  )
})

test('a purged queue is empty, and a deleted one is 404', async (t) => {
  const queue = unique()
  await api.push(
    { queue, payload: 1 },
    { queue, payload: 2 },
    { queue, payload: 3, delayMs: 60_000 },
  )
  t.match(await api.post(`/queues/${queue}/purge`), { status: 200, body: { queue, purged: 3 } })
  t.equal((await api.pop(queue)).status, 204)
  t.match(await api.del(`/resources/queues/${queue}`), { status: 200, body: { deleted: true } })
  t.equal((await api.del(`/resources/queues/${queue}`)).status, 404)
  for (const verb of ['pause', 'resume', 'purge']) {
    t.match(await api.post(`/queues/${queue}/${verb}`), {
      status: 404,
      body: { code: 'not_found' },
    })
  }
})

test('a purge forgets deduplication keys and removes its rows', async (t) => {
  const queue = unique()
  const item = { queue, payload: 1, transactionId: 'key' }
  await api.push(item)
  t.match((await api.push(item)).body, [{ status: 'duplicate' }])
  t.match(await api.post(`/queues/${queue}/purge`), { status: 200, body: { purged: 1 } })
  t.match((await api.push({ ...item, payload: 'again' })).body, [{ status: 'queued' }])
  t.match((await api.pop(queue)).body.messages, [{ data: 'again' }])
  await eventually(async () => {
    const { rows } = await node.database.pool.query(
      `select from rouse.messages m join rouse.partitions p on p.id = m.partition_id
       join rouse.queues q on q.id = p.queue_id where q.name = $1`,
      [queue],
    )
    return rows.length === 1
  })
})

test('a push to a deleted queue creates a new one, and the old rows are removed', async (t) => {
  const queue = unique()
  await api.push({ queue, payload: 'old' }, { queue, partition: 'p', payload: 'old' })
  await api.pop(queue)
  const { rows } = await node.database.pool.query<{ id: string }>(
    'select p.id from rouse.partitions p join rouse.queues q on q.id = p.queue_id where q.name = $1',
    [queue],
  )
  t.equal(rows.length, 2)
  t.equal((await api.del(`/resources/queues/${queue}`)).status, 200)
  await api.push({ queue, partition: 'p', payload: 'new' })
  const details = await api.get(`/resources/queues/${queue}`)
  t.match(details.body, { messages: 1, partitions: 1, groups: [] })
  t.match((await api.pop(queue)).body.messages, [{ data: 'new' }])
  await eventually(async () => {
    const sql = 'select from rouse.partitions where id = any ($1)'
    const left = await node.database.pool.query(sql, [rows.map(({ id }) => id)])
    return left.rows.length === 0
  })
})

test('a large queue is purged in the background, which its details show', async (t) => {
  const queue = unique()
  await api.push({ queue, payload: 1 })
  const operator = await sqlUser(t, node.database.url)
  // Make the purge run in steps, as for a queue with more than 20,000 partitions.
  await operator.query(
    `create or replace function rouse.purges_in_steps(p_queue_id integer, p_queue text) returns boolean
     language sql as $$ select p_queue = '${queue}' $$`,
  )
  await operator.query('begin')
  await operator.query(
    `select from rouse.partitions p join rouse.queues q on q.id = p.queue_id where q.name = $1 for update of p`,
    [queue],
  )
  const answer = await api.post(`/queues/${queue}/purge`)
  t.match(answer, { status: 202, body: { queue, purging: true } })
  const path = `/resources/queues/${queue}`
  t.equal(answer.headers.get('location'), `/api/v1${path}`)
  t.match((await api.get(path)).body, { messages: 1, purging: { requestedAt: /Z$/ } })
  await operator.query('commit')
  await eventually(async () => (await api.get(path)).body.purging === undefined, {
    timeoutMs: 15_000,
  })
  t.equal((await api.get(path)).body.messages, 0)
})

test('consumer groups are listed, and deleted from one queue or from all', async (t) => {
  const [a, b] = [unique(), unique()]
  const group = unique('group')
  for (const queue of [a, b]) {
    await api.push({ queue, payload: 1 })
    await api.pop(queue, `?consumerGroup=${group}`)
  }
  const listed = async () =>
    (await api.get('/consumer-groups')).body.groups
      .filter((one: { consumerGroup: string }) => one.consumerGroup === group)
      .map((one: { queue: string }) => one.queue)
  t.same(await listed(), [a, b])
  t.match(await api.del(`/consumer-groups/${group}/queues/${a}`), { status: 200 })
  t.equal((await api.del(`/consumer-groups/${group}/queues/${a}`)).status, 404)
  t.same(await listed(), [b])
  t.match(await api.del(`/consumer-groups/${group}`), { status: 200, body: { deleted: true } })
  t.equal((await api.del(`/consumer-groups/${group}`)).status, 404)
})

test('a seek moves a group to a time or to the end', async (t) => {
  const queue = unique()
  await api.push({ queue, payload: 1 }, { queue, payload: 2 })
  await api.pop(queue, '?batch=2&autoAck=true&consumerGroup=g')
  const path = `/consumer-groups/g/queues/${queue}/seek`
  t.equal((await api.post(path, { timestamp: '2020-01-01T00:00:00Z' })).status, 200)
  t.match((await api.pop(queue, '?consumerGroup=g')).body.messages, [{ data: 1 }])
  t.equal((await api.post(path, { toEnd: true })).status, 200)
  t.equal((await api.pop(queue, '?consumerGroup=g')).status, 204)
  for (const body of [
    {},
    { toEnd: false },
    { timestamp: 'x' },
    { timestamp: '2020-01-01T00:00:00Z', toEnd: true },
  ]) {
    t.equal((await api.post(path, body)).status, 400, JSON.stringify(body))
  }
  t.equal(
    (await api.post(`/consumer-groups/none/queues/${queue}/seek`, { toEnd: true })).status,
    404,
  )
})

test('a subscription creates a group at its start position', async (t) => {
  const queue = unique()
  await api.push({ queue, payload: 1 })
  const path = (group: string) => `/consumer-groups/${group}/queues/${queue}/subscription`
  t.equal((await api.post(path('new'), { subscriptionMode: 'new' })).status, 200)
  t.equal((await api.pop(queue, '?consumerGroup=new')).status, 204)
  t.equal((await api.post(path('all'), { subscriptionMode: 'all' })).status, 200)
  t.equal((await api.pop(queue, '?consumerGroup=all')).status, 200)
  t.equal((await api.post(path('new'), { subscriptionMode: 'all' })).status, 200)
  t.equal((await api.pop(queue, '?consumerGroup=new')).status, 200)
  const nowhere = `/consumer-groups/g/queues/${unique()}/subscription`
  t.equal((await api.post(nowhere, { subscriptionMode: 'new' })).status, 404)
  t.equal((await api.post(path('new'), { subscriptionMode: 'some' })).status, 400)
})

test('a subscription of a group applies to one queue or to all queues of the group', async (t) => {
  const [a, b, c] = [unique(), unique(), unique()]
  const group = unique('group')
  const path = `/consumer-groups/${group}/subscription`
  for (const queue of [a, b, c]) await api.push({ queue, payload: queue })
  t.match(await api.post(path, { subscriptionMode: 'new' }), { status: 404 })
  for (const queue of [a, b]) {
    t.match(await api.post(path, { queue, subscriptionMode: 'new' }), {
      status: 200,
      body: { success: true, queue, consumerGroup: group },
    })
  }
  t.equal((await api.pop(a, `?consumerGroup=${group}`)).status, 204)
  t.match(await api.post(path, { subscriptionTimestamp: '2020-01-01T00:00:00Z' }), {
    status: 200,
    body: { success: true, queues: [a, b], consumerGroup: group },
  })
  for (const queue of [a, b]) {
    t.match((await api.pop(queue, `?consumerGroup=${group}`)).body.messages, [{ data: queue }])
  }
  const { groups } = (await api.get(`/resources/queues/${c}`)).body
  t.same(groups, [])
  t.match(await api.post(path, { queue: unique(), subscriptionMode: 'new' }), { status: 404 })
})

test('a subscription without a start position is refused and moves nothing', async (t) => {
  const queue = unique()
  await api.push({ queue, payload: 1 })
  await api.pop(queue, '?autoAck=true&consumerGroup=g')
  for (const path of [
    '/consumer-groups/g/subscription',
    `/consumer-groups/g/queues/${queue}/subscription`,
  ]) {
    for (const body of [
      undefined,
      {},
      { queue },
      { queue, subscriptionMode: null },
      { subscriptionFrom: 'yesterday' },
      { subscriptionFrom: 'now', subscriptionTimestamp: 'now' },
    ]) {
      t.equal((await api.post(path, body)).status, 400, `${path} ${JSON.stringify(body)}`)
    }
  }
  t.equal((await api.pop(queue, '?consumerGroup=g')).status, 204)
})
