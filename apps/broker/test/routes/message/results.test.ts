// Results, progress, leases of single messages, and waiting until a message has ended.
import { eventually } from '@rouse/testkit'
import { test } from 'tap'
import { apiOf, send } from '../../support/http.ts'
import { makeKey, sendAs, untilKnown } from '../../support/keys.ts'
import { sharedBroker, unique } from '../../support/shared-broker.ts'

/** Polls are too rare to find what a hint should have announced. */
const node = await sharedBroker({
  instrumented: true,
  env: {
    ROUSE_ENCRYPTION_KEY: 'ab'.repeat(32),
    POP_WAIT_IDLE_INTERVAL_MS: '600000',
    POP_WAIT_BASE_INTERVAL_MS: '600000',
    POP_WAIT_MAX_INTERVAL_MS: '600000',
  },
})
const api = apiOf(node.url)
const timeout = 60_000

interface Popped {
  readonly id: string
  readonly receipt: string
  readonly leaseId: string
  readonly partitionId: string
  readonly transactionId: string
}

async function push(queue: string, more: object = {}): Promise<string> {
  const { status, body } = await api.push({ queue, payload: 1, ...more })
  if (status !== 201) throw new Error(JSON.stringify(body))
  return body[0].id
}

async function pop(queue: string, query = ''): Promise<Popped[]> {
  const { status, body } = await api.pop(queue, `?batch=10${query}`)
  if (status !== 200) throw new Error(`pop: ${status}`)
  return body.messages
}

/** Pushes and pops one message. */
async function popped(queue: string, more: object = {}): Promise<Popped> {
  await push(queue, more)
  return (await pop(queue))[0] as Popped
}

const find = async (id: string) => (await api.get(`/messages/${id}`)).body
const waitFor = (id: string, query = '') => api.get(`/messages/${id}?wait=true${query}`)
const configure = (queue: string, options: object) => api.post('/configure', { queue, options })

async function untilWaiting(count: number): Promise<void> {
  await eventually(async () => {
    const { body } = await send('GET', `${node.url}/stats`)
    return body.waiting.total === count && body.group_backoff.groups_in_flight === 0
  })
}

test('every form of ack stores a result, which the message then shows', async (t) => {
  const queue = unique()
  const ids = [await push(queue), await push(queue), await push(queue), await push(queue)]
  const [one, two, three, four] = (await pop(queue)) as [Popped, Popped, Popped, Popped]
  const { leaseId, partitionId, transactionId } = two
  t.match(await api.post('/ack', { receipt: one.receipt, result: { sent: true } }), { status: 200 })
  const acknowledgments = [
    { leaseId, partitionId, transactionId, result: 'two' },
    { receipt: two.receipt, result: 'too late' },
  ]
  t.match(await api.post('/ack/batch', { acknowledgments }), {
    status: 200,
    body: [{ success: true }, { success: false }],
  })
  const operations = [
    { type: 'ack', receipt: three.receipt, result: null },
    { type: 'push', items: [{ queue: unique(), payload: 1 }] },
  ]
  t.match(await api.post('/transaction', { operations }), { status: 200 })
  const acks = [{ receipt: four.receipt, result: [4] }]
  t.match(await api.post(`/pop/queue/${queue}`, { acks }), { body: { acks: [{ success: true }] } })
  const found = await Promise.all(ids.map(find))
  t.same(
    found.map(({ result }) => result),
    [{ sent: true }, 'two', null, [4]],
  )
  for (const { groups, completedAt, firstDeliveredAt, attempts, state } of found) {
    t.equal(state, 'completed')
    t.match(groups, [{ consumerGroup: 'default', state: 'completed' }])
    t.match(attempts, [{ consumerGroup: 'default', attempt: 1, outcome: 'completed' }])
    t.ok(Date.parse(completedAt) >= Date.parse(firstDeliveredAt))
  }
})

test('numbers in results and progress keep all their digits', async (t) => {
  const { id, receipt } = await popped(unique())
  const digits = '123456789012345678901234567890.1'
  const post = (path: string, text: string) =>
    fetch(api.at(path), {
      method: 'POST',
      body: text,
      headers: { 'content-type': 'application/json' },
    })
  const progress = `{"receipt":"${receipt}","progress":${digits}}`
  t.equal((await post(`/messages/${id}/progress`, progress)).status, 200)
  t.equal((await post('/ack', `{"receipt":"${receipt}","result":{"n":${digits}}}`)).status, 200)
  const text = await (await fetch(api.at(`/messages/${id}`))).text()
  t.equal(text.split(digits).length, 5, 'each at the top and in its group')
})

test('a result that is too large, misplaced or encrypted is refused, and nothing is acknowledged', async (t) => {
  const queue = unique()
  const { id, receipt, leaseId } = await popped(queue)
  const other = await popped(queue)
  const result = 'x'.repeat(65_536)
  const large = { status: 413, body: { code: 'payload_too_large' } }
  t.match(await api.post('/ack', { receipt, result }), large)
  const acknowledgments = [{ receipt: other.receipt }, { receipt, result }]
  t.match(await api.post('/ack/batch', { acknowledgments }), large)
  const operations = acknowledgments.map((ack) => ({ type: 'ack', ...ack }))
  t.match(await api.post('/transaction', { operations }), {
    status: 413,
    body: { errors: [{ field: 'operations[1].result' }] },
  })
  const invalid = { status: 400, body: { code: 'invalid_request' } }
  t.match(await api.post('/ack', { receipt, status: 'failed', result: 1 }), invalid)
  t.match(await api.post('/ack/batch', { leaseId, result: 1 }), { status: 400 })
  t.equal((await find(id)).state, 'leased')
  t.equal((await api.post('/ack', { receipt, result: 'x'.repeat(65_534) })).status, 200)

  const secret = unique()
  await configure(secret, { encryptionEnabled: true })
  const hidden = await popped(secret)
  t.match(await api.post('/ack', { receipt: hidden.receipt, result: 1 }), invalid)
  t.equal((await find(hidden.id)).state, 'leased')
})

test('progress is shown until it is replaced, and refused without the lease', async (t) => {
  const queue = unique()
  const { id, receipt } = await popped(queue)
  const other = await popped(queue)
  const report = (progress: unknown, of = receipt) =>
    api.post(`/messages/${id}/progress`, { receipt: of, progress })
  t.match(await report({ percent: 10 }), { status: 200, body: { id, success: true } })
  t.match(await find(id), { state: 'leased', progress: { percent: 10 } })
  t.equal((await report(90)).status, 200)
  t.match(await find(id), { progress: 90, groups: [{ progress: 90, progressAt: /^20/ }] })
  t.match(await report('x'.repeat(4_096)), { status: 413 })
  const lost = { status: 409, body: { code: 'lease_lost' } }
  t.match(await report(1, other.receipt), lost, 'of another message')
  t.match(await report(1, 'nonsense'), lost)
  t.match(await api.post('/messages/x/progress', { receipt, progress: 1 }), { status: 404 })
  t.match(await api.post(`/messages/${id}/progress`, { receipt, percent: 1 }), {
    status: 400,
    body: { code: 'unknown_field', errors: [{ field: 'percent', suggestion: 'progress' }] },
  })
  await api.post('/ack', { receipt })
  t.match(await report(100), lost)
})

test('an extension says how long the lease lasts: not longer while a transaction with ack_in is open', async (t) => {
  const queue = unique()
  for (let n = 0; n < 2; n += 1) await push(queue)
  const [first] = (await pop(queue, '&leaseSeconds=100')) as [Popped]
  const extended = async () =>
    (await api.post(`/lease/${first.leaseId}/extend`, { seconds: 1_000 })).body.remainingMs
  const consumer = await node.database.pool.connect()
  try {
    await consumer.query('begin')
    await consumer.query('select rouse.ack_in($1)', [first.receipt])
    const leftMs = await extended()
    t.ok(leftMs > 0 && leftMs <= 100_000, `${leftMs}`)
    await consumer.query('rollback')
  } finally {
    consumer.release()
  }
  const leftMs = await extended()
  t.ok(leftMs > 100_000 && leftMs <= 1_000_000, `${leftMs}`)
})

test('leases of single messages are extended, shortened and ended alone', async (t) => {
  const queue = unique()
  for (let n = 0; n < 3; n += 1) await push(queue)
  const [one, two, three] = (await pop(queue, '&leasePerMessage=true')) as [Popped, Popped, Popped]
  t.equal(new Set([one, two, three].map(({ leaseId }) => leaseId)).size, 3)
  const extend = (leaseId: string, body: object) => api.post(`/lease/${leaseId}/extend`, body)
  const before = Date.now()
  const shortened = await extend(one.leaseId, { seconds: 1, exact: true })
  t.equal(shortened.status, 200)
  t.ok(Date.parse(shortened.body.expiresAt) < before + 60_000)
  t.match(await extend(two.leaseId, { seconds: 0, exact: true }), { status: 400 })
  const again = await api.pop(queue, '?wait=true&timeout=20000')
  t.match(again.body.messages, [{ id: one.id, attempt: 2 }], 'it expired')
  t.equal((await api.del(`/lease/${two.leaseId}`)).status, 200)
  t.match(await pop(queue), [{ id: two.id }])
  t.equal((await find(three.id)).state, 'leased')

  await push(queue)
  await push(queue)
  const [shared] = (await pop(queue)) as [Popped]
  t.match(await extend(shared.leaseId, { seconds: 1, exact: true }), {
    status: 400,
    body: { errors: [{ field: 'exact' }] },
  })
  for (const query of ['?leasePerMessage=true&batch=101', '?leasePerMessage=true&autoAck=true']) {
    t.equal((await api.pop(queue, query)).status, 400, query)
  }
})

test('with history all, a plain ack leaves its times', async (t) => {
  const queue = unique()
  await configure(queue, { history: 'all' })
  const id = await push(queue)
  const { body } = await api.pop(queue, '?consumer=worker-7')
  await api.post('/ack', { receipt: body.messages[0].receipt })
  t.match(await find(id), {
    state: 'completed',
    firstDeliveredAt: /^20/,
    completedAt: /^20/,
    result: null,
    attempts: [{ outcome: 'completed', consumer: 'worker-7', deliveredAt: /^20/, endedAt: /^20/ }],
  })
  t.match(await configure(queue, { history: 'some' }), { status: 400 })
  const plain = await popped(unique())
  await api.post('/ack', { receipt: plain.receipt })
  t.match(await find(plain.id), { state: 'completed', completedAt: null, attempts: [] })
})

const endings: Record<string, (message: Popped) => Promise<unknown>> = {
  'an ack with a result': ({ receipt }) => api.post('/ack', { receipt, result: 'done' }),
  'a transaction with a result': ({ receipt }) =>
    api.post('/transaction', { operations: [{ type: 'ack', receipt, result: 'done' }] }),
  'the last failure': ({ receipt }) => api.post('/ack', { receipt, status: 'failed' }),
  'a dead letter': ({ receipt }) => api.post('/ack', { receipt, status: 'dlq' }),
  'the expiry of the last lease': ({ leaseId }) =>
    api.post(`/lease/${leaseId}/extend`, { seconds: 1, exact: true }),
  'a cancel': async ({ id, leaseId }) => {
    await api.del(`/lease/${leaseId}`)
    return api.del(`/messages/${id}`)
  },
  'a cancel by filter': async ({ id, leaseId }) => {
    await api.del(`/lease/${leaseId}`)
    return api.del(`/messages?queue=${(await find(id)).queue}&state=ready`)
  },
  'a plain ack, with the whole history': ({ receipt }) => api.post('/ack', { receipt }),
  'ack_in, with the whole history': ({ receipt }) =>
    node.database.pool.query('select rouse.ack_in($1)', [receipt]),
}

test('those who wait are answered when their message ends, in whatever way, on every worker', {
  timeout,
}, async (t) => {
  const other = await popped(unique())
  const longer = waitFor(other.id, '&timeout=50000')
  const cases = await Promise.all(
    Object.entries(endings).map(async ([what, end]) => {
      const queue = unique()
      await configure(queue, { retryLimit: 0, history: what.includes('history') ? 'all' : null })
      const message = await popped(queue)
      const answers = Array.from({ length: 4 }, () => waitFor(message.id, '&timeout=50000'))
      return { what, end, message, answers }
    }),
  )
  await untilWaiting(1 + 4 * cases.length)
  for (const { what, end, message, answers } of cases) {
    await end(message)
    for (const answer of await Promise.all(answers)) {
      t.match(answer, { status: 200, body: { id: message.id } })
      t.match(answer.body.state, /completed|dead|cancelled/, what)
    }
  }
  await untilWaiting(1)
  await api.post('/ack', { receipt: other.receipt, result: 1 })
  t.match(await longer, { status: 200, body: { id: other.id, result: 1 } })
})

const races = {
  'newest-group': 'after the message was found and before the waiter is registered',
  'ended-messages': 'while the first lookup of the waiter reads older data',
}

for (const [barrier, when] of Object.entries(races)) {
  test(`a result that is committed ${when} answers the waiter`, { timeout }, async (t) => {
    const { id, receipt } = await popped(unique())
    const armed = await node.database.armBarrier(barrier)
    const answer = waitFor(id, '&timeout=50000')
    await armed.reached()
    t.equal((await api.post('/ack', { receipt, result: 'meanwhile' })).status, 200)
    await armed.release()
    const releasedAt = performance.now()
    t.match(await answer, { status: 200, body: { result: 'meanwhile' } })
    t.ok(performance.now() - releasedAt < 30_000, 'long before the deadline')
  })
}

test('a wait ends at its deadline with the present state, and waits for one group or for all', async (t) => {
  const queue = unique()
  const id = await push(queue)
  t.match(await waitFor(id, '&timeout=0'), { status: 200, body: { state: 'ready' } })
  t.match(await waitFor(id, '&timeout=50'), { status: 200, body: { state: 'ready' } })
  const [mine] = await pop(queue, '&consumerGroup=mine')
  const [other] = await pop(queue, '&consumerGroup=other')
  const one = waitFor(id, '&timeout=50000&consumerGroup=mine')
  const all = waitFor(id, '&timeout=50000')
  await untilWaiting(2)
  await api.post('/ack', { receipt: mine?.receipt, result: 1 })
  t.match(await one, { status: 200, body: { state: 'leased', result: 1 } })
  await untilWaiting(1)
  await api.post('/ack', { receipt: other?.receipt, status: 'dlq' })
  t.match(await all, { status: 200, body: { state: 'dead' } })
  t.match(await waitFor('x'), { status: 404 })
  for (const query of ['&timeout=x', '&consumerGroup=%1f', '&groups=x']) {
    t.equal((await waitFor(id, query)).status, 400, query)
  }
})

test('a client that disconnects frees its place, and HEAD does not wait', async (t) => {
  await untilWaiting(0)
  const id = await push(unique())
  const gone = new AbortController()
  const url = api.at(`/messages/${id}?wait=true&timeout=50000`)
  const answer = fetch(url, { signal: gone.signal }).catch(() => 'gone')
  await untilWaiting(1)
  gone.abort()
  t.equal(await answer, 'gone')
  await untilWaiting(0)
  t.equal((await fetch(url, { method: 'HEAD' })).status, 405)
  t.equal((await fetch(api.at(`/messages/${id}`), { method: 'HEAD' })).status, 200)
})

test('waiting needs the grant to peek, counts against the limit of the key, and ends with the key', {
  timeout,
}, async (t) => {
  const queue = unique()
  const id = await push(queue)
  const url = (query = '') => api.at(`/messages/${id}?wait=true${query}`)
  const admin = await makeKey(node.url, undefined, { name: 'root', preset: 'admin' })
  await untilKnown(node.url, admin.key, 200)
  const strange = await makeKey(node.url, admin.key, { name: 'a', grants: ['peek:another'] })
  const key = await makeKey(node.url, admin.key, {
    name: 'b',
    grants: [`peek:${queue}`],
    limits: { waitingPops: 1 },
  })
  for (const one of [strange, key]) await untilKnown(node.url, one.key, 403)
  t.equal((await sendAs(strange.key, 'GET', url())).status, 404)
  const answer = sendAs(key.key, 'GET', url('&timeout=50000'))
  await eventually(async () => {
    const { status } = await sendAs(key.key, 'GET', url('&timeout=1'))
    return status === 429
  })
  await sendAs(admin.key, 'DELETE', api.at(`/keys/${key.id}`))
  t.equal((await answer).status, 401)
})
