// A locked queue or partition affects only its own clients.
import { setTimeout as delay } from 'node:timers/promises'
import { eventually } from '@rouse/testkit'
import { test } from 'tap'
import { apiOf } from '../support/http.ts'
import { untilWaiting } from '../support/node-state.ts'
import { sharedBroker } from '../support/shared-broker.ts'
import { sqlUser } from '../support/sql-user.ts'

const node = await sharedBroker({ instrumented: true, env: { ROUSE_WORKERS: '1' } })
const api = apiOf(node.url)

test('waiters of other queues are woken while an operator keeps a queue locked', async (t) => {
  await api.push({ queue: 'stuck', payload: 1 }, { queue: 'other', payload: 1 })
  await api.pop('other', '?autoAck=true')
  const other = api.pop('other', '?wait=true&timeout=30000')
  await untilWaiting(node, 'other', 1)
  // Lock the queue, as purge and configure do while they run.
  const operator = await sqlUser(t, node.database.url)
  await operator.query('begin')
  await operator.query(`select from rouse.queues where name = 'stuck' for no key update`)
  const stuck = ['a', 'b', 'c'].map((group) =>
    api.pop('stuck', `?wait=true&timeout=30000&consumerGroup=${group}`),
  )
  await eventually(async () => {
    const { rows } = await node.database.pool.query(
      `select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`,
    )
    return rows.length === stuck.length
  })
  await api.push({ queue: 'other', payload: 2 })
  const answer = await Promise.race([other, delay(3_000)])
  t.equal((answer as { status?: number } | undefined)?.status, 200, 'woken')
  await operator.query('commit')
  for (const { status } of await Promise.all(stuck)) t.equal(status, 200)
  t.equal((await other).status, 200)
})

test("a user's open rouse.cancel holds up a replace of its message, and no push of another queue", async (t) => {
  const unique = { key: 'k', onConflict: 'replace' }
  const replace = (payload: unknown) => api.push({ queue: 'cancelled', payload, unique })
  const { body } = await api.push({ queue: 'cancelled', payload: 1, delayMs: 3_600_000, unique })
  const user = await sqlUser(t, node.database.url)
  await user.query('begin')
  await user.query('select rouse.cancel($1)', [body[0].id])
  for (let round = 0; round < 4; round += 1) {
    // The pushes that arrive while others run share a call.
    const beside = (from: number) =>
      Array.from({ length: 40 }, (_, i) => api.push({ queue: `beside-${from + i}`, payload: i }))
    const before = beside(0)
    const replacing = replace(round)
    const others = await Promise.all([...before, ...beside(40)])
    const replaced = await replacing
    t.match(replaced, { status: 503, body: { code: 'partition_locked' } })
    t.same(
      others.filter(({ status }) => status !== 201),
      [],
    )
  }
  await user.query('commit')
  await eventually(async () => (await replace('new')).status === 201)
  t.match((await api.pop('cancelled', '?batch=10')).body.messages, [{ data: 'new' }])
})

const operations: Record<string, (queue: string) => ReturnType<typeof api.post>> = {
  'a seek': (queue) => api.post(`/consumer-groups/g/queues/${queue}/seek`, { toEnd: true }),
  'a purge': (queue) => api.post(`/queues/${queue}/purge`),
  'the deletion of the queue': (queue) => api.del(`/resources/queues/${queue}`),
  'the deletion of the group': (queue) => api.del(`/consumer-groups/g/queues/${queue}`),
  'a new maxInFlight': (queue) => api.post('/configure', { queue, options: { maxInFlight: 5 } }),
}

for (const [name, operation] of Object.entries(operations)) {
  test(`${name} is refused within a second while a consumer's transaction is open`, async (t) => {
    const queue = `open-${name.replaceAll(' ', '-')}`
    await api.push(
      { queue, partition: 'p', payload: 1 },
      { queue, partition: 'p', payload: 2 },
      { queue, partition: 'other', payload: 'other' },
    )
    const { body } = await api.get(`/pop/queue/${queue}/partition/p?consumerGroup=g`)
    const consumer = await sqlUser(t, node.database.url)
    await consumer.query('begin')
    await consumer.query('select rouse.ack_in($1)', [body.messages[0].receipt])
    const begunMs = performance.now()
    const refused = operation(queue)
    // None of these calls waits for the transaction.
    const pushed = await Promise.race([api.push({ queue, partition: 'p', payload: 3 }), delay(900)])
    const popped = await Promise.race([
      api.get(`/pop/queue/${queue}/partition/other?consumerGroup=g`),
      delay(900),
    ])
    t.match(pushed, { status: 201 })
    t.match(popped, { status: 200 })
    const answer = await refused
    t.match(answer, {
      status: 409,
      body: {
        code: 'consumer_transaction_open',
        retryable: true,
        leases: 1,
        oldestLeaseAgeMs: Number,
        detail: /holds 1 lease .* nothing was changed/,
      },
    })
    t.equal(answer.headers.get('retry-after'), '1')
    t.ok(performance.now() - begunMs < 1_000, 'within a second')
    await consumer.query('commit')
    t.equal((await operation(queue)).status, 200)
  })
}

test("an operation waits for a consumer's transaction that ends within a moment", async (t) => {
  await api.push({ queue: 'brief', payload: 1 })
  const { body } = await api.pop('brief', '?consumerGroup=g')
  const consumer = await sqlUser(t, node.database.url)
  await consumer.query('begin')
  await consumer.query('select rouse.ack_in($1)', [body.messages[0].receipt])
  const refusing = await node.database.armBarrier('consumer-transaction-open')
  const purged = api.post('/queues/brief/purge')
  await refusing.reached()
  await consumer.query('commit')
  await refusing.release()
  t.equal((await purged).status, 200)
})

test('the error for a purge of a locked queue says what to do', async (t) => {
  await api.push({ queue: 'locked', payload: 1 })
  const holder = await sqlUser(t, node.database.url)
  await holder.query('begin')
  await holder.query(`select from rouse.queues where name = 'locked' for update`)
  const answer = await api.post('/queues/locked/purge')
  t.match(answer, {
    status: 503,
    body: { code: 'overloaded', detail: /nothing was changed: try again/ },
  })
})

test('a push to a locked partition is partition_locked, and pushes to other queues succeed', async (t) => {
  await api.push({ queue: 'kept', payload: 1 }, { queue: 'free', payload: 1 })
  const user = await sqlUser(t, node.database.url)
  await user.query('begin')
  await user.query(
    `select from rouse.partitions where queue_id = (select id from rouse.queues where name = 'kept') for update`,
  )
  const refused = Array.from({ length: 60 }, () => api.push({ queue: 'kept', payload: 2 }))
  for (let n = 0; n < 50; n += 1) {
    const startedAt = performance.now()
    t.equal((await api.push({ queue: 'free', payload: n })).status, 201)
    t.ok(performance.now() - startedAt < 1_000)
  }
  for (const { status, headers, body } of await Promise.all(refused)) {
    t.match([status, body.code, headers.get('retry-after')], [503, 'partition_locked', '1'])
  }
  await user.query('commit')
  await eventually(async () => (await api.push({ queue: 'kept', payload: 3 })).status === 201)
  const { body } = await api.get('/resources/queues/kept')
  t.equal(body.messages, 2, 'refused pushes are not stored')
})
