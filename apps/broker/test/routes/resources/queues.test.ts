import { eventually } from '@rouse/testkit'
import { test } from 'tap'
import { apiOf, send } from '../../support/http.ts'
import { sharedBroker, unique } from '../../support/shared-broker.ts'

const node = await sharedBroker({ instrumented: true })
const { url, database } = node
const api = apiOf(url)
const put = (queue: string, body?: unknown) => send('PUT', api.at(`/queues/${queue}`), body)
const patch = (queue: string, body?: unknown) => send('PATCH', api.at(`/queues/${queue}`), body)

test('PUT creates a queue, and replaces everything of an existing one', async (t) => {
  const queue = unique()
  const made = await put(queue, { namespace: 'n', task: 'k', options: { retryLimit: 9 } })
  t.match(made, {
    status: 200,
    body: { queue, namespace: 'n', task: 'k', options: { retryLimit: 9, leaseTime: 300 } },
  })
  const replaced = await put(queue, { task: 'other', options: { leaseTime: 5 } })
  t.match(replaced.body, {
    namespace: null,
    task: 'other',
    options: { retryLimit: 3, leaseTime: 5 },
  })
  t.match((await put(queue)).body, { task: null, options: { leaseTime: 300 } })
  t.match(await api.get(`/queues/${queue}`), { status: 200, body: { queue, task: null } })
})

test('PATCH merges into an existing queue, and creates none', async (t) => {
  const queue = unique()
  t.match(await patch(queue, { options: { leaseTime: 5 } }), { status: 404 })
  t.equal((await api.get(`/queues/${queue}`)).status, 404)
  await put(queue, { namespace: 'n', options: { retryLimit: 9 } })
  t.match((await patch(queue, { options: { leaseTime: 5 } })).body, {
    namespace: 'n',
    options: { retryLimit: 9, leaseTime: 5 },
  })
  t.match((await patch(queue, { namespace: 'm', options: { retryLimit: null } })).body, {
    namespace: 'm',
    options: { retryLimit: 3, leaseTime: 5 },
  })
})

test('a PATCH that meets a deletion does not create the queue again', async (t) => {
  const queue = unique()
  await put(queue)
  const barrier = await database.armBarrier('patch-locked')
  const patched = patch(queue, { options: { leaseTime: 5 } })
  await barrier.reached()
  const deleted = api.del(`/queues/${queue}`)
  await barrier.release()
  t.match((await patched).status, Number, 'it may show the queue, or already miss it')
  t.equal((await deleted).status, 200)
  t.equal((await api.get(`/queues/${queue}`)).status, 404)
  t.equal((await patch(queue, { options: { leaseTime: 5 } })).status, 404)
})

test('invalid settings are refused by name and change nothing', async (t) => {
  const queue = unique()
  t.match(await put(queue, { retryLimit: 5 }), {
    status: 400,
    body: { code: 'unknown_field', errors: [{ suggestion: 'options.retryLimit' }] },
  })
  t.match(await put(queue, { options: { retrylimit: 5 } }), {
    status: 400,
    body: { code: 'unknown_option', errors: [{ suggestion: 'retryLimit' }] },
  })
  t.match(await put(queue, { options: { leaseTime: -1 } }), {
    status: 400,
    body: { code: 'invalid_option', errors: [{ field: 'leaseTime' }] },
  })
  t.match(await put(queue, { namespace: '..' }), { status: 400, body: { code: 'invalid_name' } })
  t.equal((await api.get(`/queues/${queue}`)).status, 404)
  t.equal((await put('..')).status, 404)
})

test('the figures count messages by state', async (t) => {
  const queue = unique()
  const figures = async () => (await api.get(`/queues/${queue}`)).body
  await put(queue, { options: { onFailure: 'skip', ordering: 'none', retryBackoffMs: [60_000] } })
  t.match(await figures(), {
    paused: false,
    createdAt: /Z$/,
    ready: 0,
    leased: 0,
    retrying: 0,
    scheduled: 0,
    dead: 0,
    consumers: 0,
    oldestAgeMs: null,
    held: null,
    state: 'ok',
  })
  await api.push(...[1, 2, 3, 4].map((payload) => ({ queue, payload })))
  await api.push({ queue, payload: 5, delayMs: 60_000 })
  await database.advanceClock(2_000)
  const unread = await figures()
  t.match(unread, { ready: 4, scheduled: 1, state: 'no_consumers' }, 'without a consumer group')
  t.ok(unread.oldestAgeMs >= 2_000 && unread.oldestAgeMs < 60_000)
  const [failed, dead] = (await api.pop(queue, '?batch=3')).body.messages
  await api.ack(failed, 'failed')
  await api.ack(dead, 'dlq')
  t.match(await figures(), { ready: 1, leased: 1, retrying: 1, dead: 1, consumers: 1, state: 'ok' })
  await api.pop(queue, '?consumerGroup=second&subscriptionMode=new')
  t.match(await figures(), { ready: 1, leased: 1 }, 'a group that is ahead adds nothing')
  await api.post(`/queues/${queue}/pause`)
  t.match(await figures(), { paused: true, state: 'paused' })
})

test('a pop that waits is a consumer, under the queue or its namespace', async (t) => {
  const queue = unique()
  await put(queue, { namespace: queue })
  const leave = new AbortController()
  const waits = [`/pop/queue/${queue}?wait=true`, `/pop?namespace=${queue}&wait=true`].map((path) =>
    fetch(api.at(path), { signal: leave.signal }).catch(() => {}),
  )
  const consumers = async () => (await api.get(`/queues/${queue}`)).body.consumers
  t.ok(await eventually(async () => (await consumers()) === 2))
  leave.abort()
  await Promise.all(waits)
  t.ok(await eventually(async () => (await consumers()) === 0))
})

test('a queue that a failed message holds says until when, and why', async (t) => {
  const queue = unique()
  await put(queue, { options: { retryBackoffMs: [60_000] } })
  await api.push(...[1, 2].map((payload) => ({ queue, partition: 'p', payload })))
  await api.ack((await api.pop(queue)).body.messages[0], 'failed', { error: 'card declined' })
  const { body } = await api.get(`/queues/${queue}`)
  t.match(body, { state: 'held', retrying: 1, held: { errorMessage: 'card declined' } })
  t.ok(Date.parse(body.held.until) > Date.now())
})

test('the list has pages and filters, and shows the options', async (t) => {
  const namespace = unique('space')
  const names = [unique('list-a'), unique('list-b'), unique('list-c')]
  for (const queue of names) await put(queue, { namespace })
  const first = (await api.get(`/queues?namespace=${namespace}&limit=2`)).body
  t.same(
    first.queues.map((one: { queue: string }) => one.queue),
    names.slice(0, 2),
  )
  t.match(first, { asOf: /Z$/, queues: [{ options: { leaseTime: 300 } }, {}] })
  const rest = await api.get(`/queues?namespace=${namespace}&limit=2&cursor=${first.cursor}`)
  t.match(rest.body, { queues: [{ queue: names[2], ready: 0, state: 'ok' }], cursor: null })
  for (const query of ['limit=0', 'limit=10001', 'cursor=%25', 'offset=-1']) {
    t.equal((await api.get(`/queues?${query}`)).status, 400, query)
  }
})

test('DELETE removes a queue', async (t) => {
  const queue = unique()
  await put(queue)
  t.match(await api.del(`/queues/${queue}`), { status: 200, body: { deleted: true } })
  t.equal((await api.del(`/queues/${queue}`)).status, 404)
})

test('a queue whose messages are completed has consumers, also between their requests', async (t) => {
  const [busy, left] = [unique(), unique()]
  for (const queue of [busy, left]) {
    await api.push({ queue, payload: 1 }, { queue, payload: 2 })
  }
  const figuresOf = async (queue: string) => (await api.get(`/queues/${queue}`)).body
  t.equal((await api.pop(busy, '?autoAck=true')).status, 200)
  // Workers learn of it at different times, so the same response must have both.
  let seen = await figuresOf(busy)
  await eventually(async () => (seen = await figuresOf(busy)).completedPerSecond > 0)
  t.match(seen, { ready: 1, consumers: 0, state: 'ok' })
  t.match(await figuresOf(left), { ready: 2, consumers: 0, state: 'no_consumers' })
})
