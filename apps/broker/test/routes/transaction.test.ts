import { test } from 'tap'
import { type Ackable, ackOf, apiOf } from '../support/http.ts'
import { sharedBroker, unique } from '../support/shared-broker.ts'

const { url } = await sharedBroker()
const api = apiOf(url)

async function onePopped() {
  const queue = unique()
  await api.push({ queue, payload: 'in' })
  const { body } = await api.pop(queue)
  return { queue, message: body.messages[0] }
}

test('an ack and pushes are committed together', async (t) => {
  const { queue, message } = await onePopped()
  const next = unique()
  const answer = await api.post('/transaction', {
    operations: [
      { type: 'ack', ...ackOf(message), status: 'completed' },
      {
        type: 'push',
        items: [
          { queue: next, payload: 1 },
          { queue: next, payload: null },
        ],
      },
      { type: 'push', items: [{ queue: next, payload: 3, transactionId: 'three' }] },
    ],
  })
  t.match(answer, {
    status: 200,
    body: {
      success: true,
      results: [
        { type: 'ack', index: 0, transactionId: message.transactionId, success: true },
        { type: 'push', index: 1, success: true, items: [{ index: 0 }, { index: 1 }] },
        { type: 'push', index: 2, items: [{ index: 0, transaction_id: 'three' }] },
      ],
    },
  })
  t.match((await api.get(`/resources/queues/${queue}`)).body.groups, [{ inFlight: 0, pending: 0 }])
  const { body } = await api.pop(next, '?batch=5')
  t.same(
    body.messages.map((one: { data: unknown }) => one.data),
    [1, null, 3],
  )
})

test('a transaction with a stale ack changes nothing', async (t) => {
  const { message } = await onePopped()
  const next = unique()
  const operations = [
    { type: 'push', items: [{ queue: next, payload: 1 }] },
    { type: 'ack', ...ackOf(message) },
  ]
  await api.ack(message)
  t.match(await api.post('/transaction', { operations }), {
    status: 409,
    body: { success: false, code: 'lease_lost', error: /lease/ },
  })
  t.equal((await api.pop(next)).status, 204)
})

test('a transaction with an invalid push leaves the message leased', async (t) => {
  const { message } = await onePopped()
  const answer = await api.post('/transaction', {
    operations: [
      { type: 'ack', ...ackOf(message) },
      { type: 'push', items: [{ queue: '', payload: 1 }] },
    ],
  })
  t.match(answer, {
    status: 400,
    body: { success: false, errors: [{ field: 'operations[1].items[0].queue' }] },
  })
  t.equal((await api.ack(message)).status, 200)
})

test('requiredLeases of older clients fence an ack, and an ack without any lease is refused', async (t) => {
  const { message } = await onePopped()
  const { leaseId, ...ack } = ackOf(message)
  const operations = [{ type: 'ack', ...ack, status: 'completed' }]
  t.equal((await api.post('/transaction', { operations })).status, 400)
  t.equal((await api.post('/transaction', { operations, requiredLeases: ['x'] })).status, 409)
  const good = await api.post('/transaction', { operations, requiredLeases: [leaseId] })
  t.match(good, { status: 200, body: { success: true } })
})

/** An ack without a leaseId, as older clients send it. */
function unfenced(message: Ackable): object {
  const { transactionId, partitionId } = message
  return { type: 'ack', transactionId, partitionId, status: 'completed' }
}

test('any leaseId of a pop covers all its messages, in all its partitions', async (t) => {
  const queue = unique()
  await api.push(
    { queue, payload: 1 },
    { queue, payload: 2, transactionId: 'two' },
    { queue, payload: 3 },
    { queue, payload: 4, partition: 'other', transactionId: 'two' },
  )
  const { body } = await api.pop(queue, '?batch=9&partitions=2')
  const [one, two, three, four] = body.messages
  const transact = (requiredLeases: string[], ...acked: Ackable[]) =>
    api.post('/transaction', { operations: acked.map(unfenced), requiredLeases })
  t.match(await transact([body.leaseId], two), {
    status: 200,
    body: { results: [{ transactionId: 'two', success: true }] },
  })
  t.equal((await transact([body.leaseId], two)).status, 409)
  t.equal((await transact([two.leaseId], three, four)).status, 200)
  t.equal((await transact([four.leaseId], one)).status, 200)
  t.match((await api.get(`/resources/queues/${queue}`)).body.groups, [{ inFlight: 0, pending: 0 }])
})

test('every required lease must be live, even one that no ack uses', async (t) => {
  const good = await onePopped()
  const [held, released] = [await onePopped(), await onePopped()]
  const other = unique()
  await api.del(`/lease/${released.message.leaseId}`)
  const { message } = good
  for (const bad of ['x', 'A'.repeat(48), released.message.leaseId]) {
    for (const ack of [unfenced(message), { type: 'ack', ...ackOf(message) }]) {
      const answer = await api.post('/transaction', {
        operations: [ack, { type: 'push', items: [{ queue: other, payload: 1 }] }],
        requiredLeases: [message.leaseId, bad],
      })
      t.match(answer, { status: 409, body: { success: false, code: 'lease_lost' } }, bad)
    }
  }
  t.equal((await api.pop(other)).status, 204)
  const operations = [unfenced(message)]
  const requiredLeases = [message.leaseId, held.message.leaseId]
  t.equal((await api.post('/transaction', { operations, requiredLeases })).status, 200)
  t.equal((await api.ack(held.message)).status, 200)
})

test('a required lease does not cover messages of another lease', async (t) => {
  const [mine, other] = [await onePopped(), await onePopped()]
  const answer = await api.post('/transaction', {
    operations: [unfenced(other.message), unfenced({ ...mine.message, transactionId: 'a\0' })],
    requiredLeases: [mine.message.leaseId],
  })
  t.match(answer, { status: 409, body: { code: 'lease_lost' } })
  t.equal((await api.ack(other.message)).status, 200)
})

test('the number of required leases is limited', async (t) => {
  const requiredLeases = Array.from({ length: 1_001 }, () => 'x')
  t.match(await api.post('/transaction', { operations: [], requiredLeases }), {
    status: 400,
    body: { errors: [{ field: 'requiredLeases' }] },
  })
})

test('an invalid transaction is refused with 400', async (t) => {
  for (const body of [
    {},
    { operations: {} },
    { operations: [{}] },
    { operations: [{ type: 'pop' }] },
    { operations: [{ type: 'push' }] },
    { operations: [{ type: 'push', items: [{}] }] },
    { operations: [{ type: 'ack' }] },
    { operations: [null] },
    { operations: [], requiredLeases: 'x' },
  ]) {
    const answer = await api.post('/transaction', body)
    t.match(answer, { status: 400, body: { success: false } }, JSON.stringify(body))
  }
})
