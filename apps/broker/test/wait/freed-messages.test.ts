// Everything that makes a message deliverable wakes its waiters, without a fallback poll.
import { setTimeout as delay } from 'node:timers/promises'
import { type Test, test } from 'tap'
import { type Answer, apiOf, send } from '../support/http.ts'
import { pass, untilWaiting } from '../support/node-state.ts'
import { sharedBroker, unique } from '../support/shared-broker.ts'
import { sqlUser } from '../support/sql-user.ts'

const node = await sharedBroker({ env: { POP_WAIT_IDLE_INTERVAL_MS: '60000' } })
const api = apiOf(node.url)

async function within<T>(ms: number, work: Promise<T>): Promise<T | undefined> {
  return Promise.race([work, delay(ms, undefined, { ref: false })])
}

const deletions: Readonly<Record<string, (queue: string) => string>> = {
  'from its queue': (queue) => `/consumer-groups/${queue}/queues/${queue}`,
  everywhere: (queue) => `/consumer-groups/${queue}`,
}

for (const [where, path] of Object.entries(deletions)) {
  test(`a group that is deleted ${where} starts over at once for its waiters`, async (t) => {
    const queue = unique()
    await api.push({ queue, payload: 1 })
    t.equal((await api.pop(queue, `?consumerGroup=${queue}&autoAck=true`)).status, 200)
    const waiting = api.pop(queue, `?consumerGroup=${queue}&wait=true&timeout=20000`)
    await untilWaiting(node, queue, 1)
    t.equal((await api.del(path(queue))).status, 200)
    t.equal((await within(2_000, waiting))?.status, 200, 'woken')
  })
}

/** Every way to end a lease, given the response to a pop. */
const endings: Readonly<Record<string, (held: Answer['body']) => Promise<unknown>>> = {
  'an ack': ({ messages: [message] }) => api.ack(message),
  'an ack of the whole lease': ({ leaseId }) =>
    api.post('/ack/batch', { leaseId, status: 'completed' }),
  'a failure': ({ messages: [message] }) => api.ack(message, 'failed'),
  'a retry': ({ messages: [message] }) => api.ack(message, 'retry'),
  'a dead letter': ({ messages: [message] }) => api.ack(message, 'dlq'),
  'a released lease': ({ leaseId }) => api.del(`/lease/${leaseId}`),
}

/**
 * Creates a queue with maxInFlight 1 and leases a message of one partition. Starts a waiter for the other.
 */
async function startLimited(t: Test, query = '') {
  const queue = unique()
  await api.post('/configure', { queue, options: { maxInFlight: 1 } })
  await api.push({ queue, partition: 'a', payload: 'a' })
  const held = await send('GET', api.at(`/pop/queue/${queue}/partition/a${query}`))
  t.equal(held.status, 200)
  await api.push({ queue, partition: 'b', payload: 'b' })
  const waiting = send('GET', api.at(`/pop/queue/${queue}/partition/b?wait=true&timeout=20000`))
  return { queue, held, waiting }
}

for (const [name, end] of Object.entries(endings)) {
  test(`maxInFlight: ${name} in one partition wakes a waiter for another`, async (t) => {
    const { queue, held, waiting } = await startLimited(t)
    await untilWaiting(node, queue, 1)
    await end(held.body)
    t.equal((await within(2_000, waiting))?.body?.messages[0].data, 'b', 'woken')
  })
}

test('maxInFlight: an expired lease wakes a waiter for another partition', async (t) => {
  const { waiting } = await startLimited(t, '?leaseSeconds=1')
  t.equal((await within(5_000, waiting))?.body?.messages[0].data, 'b', 'woken')
})

test('maxInFlight: acknowledging part of a lease by ack_in wakes a waiter', async (t) => {
  const queue = unique()
  await api.post('/configure', { queue, options: { maxInFlight: 2 } })
  await api.push({ queue, partition: 'a', payload: 1 }, { queue, partition: 'a', payload: 2 })
  const held = await api.pop(queue, '?batch=2')
  t.equal(held.body.messages.length, 2)
  await api.push({ queue, partition: 'b', payload: 3 })
  const waiting = api.pop(queue, '?wait=true&timeout=20000')
  await untilWaiting(node, queue, 1)
  const user = await sqlUser(t, node.database.url)
  await user.query('select rouse.ack_in($1)', [held.body.messages[0].receipt])
  t.equal((await within(2_000, waiting))?.body?.messages[0].data, 3, 'woken')
})

test('switching windowBuffer off wakes waiters for the messages it held back', async (t) => {
  const queue = unique()
  await api.post('/configure', { queue, options: { windowBuffer: 3600 } })
  await api.push({ queue, payload: 1 })
  const waiting = api.pop(queue, '?wait=true&timeout=20000')
  await untilWaiting(node, queue, 1)
  await api.post('/configure', { queue, options: { windowBuffer: 0 } })
  t.equal((await within(2_000, waiting))?.status, 200, 'woken')
})

for (const options of [{ onFailure: 'skip' }, { ordering: 'none' }]) {
  const [[name, value]] = Object.entries(options) as [[string, string]]
  test(`setting ${name} to ${value} wakes waiters for messages behind a failed one`, async (t) => {
    const queue = unique()
    await api.post('/configure', { queue, options: { retryBackoffMs: [3_600_000] } })
    await api.push({ queue, partition: 'p', payload: 1 }, { queue, partition: 'p', payload: 2 })
    const { body } = await api.pop(queue)
    await api.ack(body.messages[0], 'failed')
    const waiting = api.pop(queue, '?wait=true&timeout=20000')
    await untilWaiting(node, queue, 1)
    t.equal((await api.post('/configure', { queue, options })).status, 200)
    t.equal((await within(2_000, waiting))?.body?.messages[0].data, 2, 'woken')
  })
}

test('a push wakes a waiter once the ttl of the failed message before it has passed', async (t) => {
  const queue = unique()
  await api.post('/configure', { queue, options: { retryBackoffMs: [3_600_000] } })
  await api.push({ queue, partition: 'p', payload: 1 })
  const { body } = await api.pop(queue)
  await api.ack(body.messages[0], 'failed')
  await api.post('/configure', { queue, options: { ttl: 1 } })
  const waiting = api.pop(queue, '?wait=true&timeout=20000')
  await untilWaiting(node, queue, 1)
  await pass(1_100)
  await api.push({ queue, partition: 'p', payload: 2 })
  t.equal((await within(2_000, waiting))?.body?.messages[0].data, 2, 'woken')
})
