// A message by the id that its push returned.
import { test } from 'tap'
import { apiOf } from '../../support/http.ts'
import { sharedBroker, unique } from '../../support/shared-broker.ts'

const node = await sharedBroker({ env: { ROUSE_ENCRYPTION_KEY: 'ab'.repeat(32) } })
const api = apiOf(node.url)

async function push(item: object): Promise<string> {
  const { status, body } = await api.push(item)
  if (status !== 201) throw new Error(JSON.stringify(body))
  return body[0].id
}

const find = async (id: string) => (await api.get(`/messages/${id}`)).body

test('the id of a push leads to the message, in every state', async (t) => {
  const queue = unique()
  await api.post('/configure', { queue, options: { retryBackoffMs: [60_000], retryLimit: 1 } })
  const beforeMs = Date.now()
  const id = await push({ queue, payload: { n: 1 }, headers: { h: 'v' }, traceId: 'trace' })
  const found = await find(id)
  t.match(found, {
    id,
    queue,
    partition: null,
    state: 'ready',
    data: { n: 1 },
    headers: { h: 'v' },
    traceId: 'trace',
    dueAt: null,
    firstDeliveredAt: null,
    completedAt: null,
    result: null,
    progress: null,
    attempts: [],
    groups: [],
  })
  t.ok(Math.abs(Date.parse(found.createdAt) - beforeMs) < 10_000)
  const { body } = await api.pop(queue, '?consumerGroup=g&consumer=worker-7')
  t.equal(body.messages[0].id, id)
  const leased = await find(id)
  t.match(leased, {
    state: 'leased',
    groups: [{ consumerGroup: 'g', state: 'leased', consumer: 'worker-7' }],
  })
  t.match(leased.groups[0].holder, /\/\d+$/, 'node and worker')
  t.type(leased.firstDeliveredAt, 'string')
  await api.ack(body.messages[0], 'failed', { error: 'no', errorCode: 'E' })
  t.match(await find(id), {
    state: 'retrying',
    attempts: [
      { consumerGroup: 'g', attempt: 1, outcome: 'failed', errorCode: 'E', consumer: 'worker-7' },
    ],
  })
  await api.pop(queue, '?consumerGroup=other')
  t.match(await find(id), { state: 'leased' }, 'the group that is further behind')
  t.match(await api.post(`/messages/${id}/run-now`), {
    status: 200,
    body: { id, state: 'retrying' },
  })
  const again = await api.pop(queue, '?wait=true&timeout=5000&consumerGroup=g')
  t.match(again.body.messages[0], { id, attempt: 2 })
  await api.ack(again.body.messages[0], 'failed', { error: 'no', errorCode: 'E' })
  t.match((await find(id)).groups, [
    { consumerGroup: 'g', state: 'dead' },
    { consumerGroup: 'other' },
  ])
  const letters = (await api.get(`/dead-letters?queue=${queue}`)).body.deadLetters
  t.match(letters, [{ id, history: [{ consumer: 'worker-7' }, { consumer: null }] }])
})

test('an encrypted message is found by its id', async (t) => {
  const queue = unique()
  await api.post('/configure', { queue, options: { encryptionEnabled: true } })
  for (const delayMs of [0, 60_000]) {
    const id = await push({ queue, payload: 'secret', delayMs })
    t.match(await find(id), { id, data: 'secret', state: delayMs > 0 ? 'scheduled' : 'ready' })
  }
  const { body } = await api.pop(queue)
  t.match(await find(body.messages[0].id), { state: 'leased', data: 'secret' })
})

test('a scheduled message is shown, runs now, and keeps its id', async (t) => {
  const queue = unique()
  const id = await push({ queue, payload: 1, delayMs: 60_000 })
  const found = await find(id)
  t.match(found, { id, queue, state: 'scheduled', transactionId: id, groups: [] })
  t.ok(Date.parse(found.dueAt) > Date.now() + 30_000)
  t.match(await api.post(`/messages/${id}/run-now`), { status: 200, body: { state: 'scheduled' } })
  const { body } = await api.pop(queue, '?wait=true&timeout=5000')
  t.match(body.messages, [{ id, data: 1 }])
  t.match(await api.post(`/messages/${id}/run-now`), {
    status: 409,
    body: { code: 'not_scheduled' },
  })
})

test('a message is cancelled once, and never delivered', async (t) => {
  const queue = unique()
  const ready = await push({ queue, payload: 'ready' })
  const scheduled = await push({ queue, payload: 'scheduled', delayMs: 200 })
  const kept = await push({ queue, payload: 'kept' })
  for (const id of [ready, scheduled]) {
    for (let i = 0; i < 2; i += 1) {
      t.match(await api.del(`/messages/${id}`), { status: 200, body: { cancelled: true } })
    }
    t.match(await find(id), { state: 'cancelled' })
  }
  const listed = (await api.get(`/messages?queue=${queue}&state=cancelled`)).body.messages
  t.same(new Set(listed.map(({ id }: { id: string }) => id)), new Set([ready, scheduled]))
  const { body } = await api.pop(queue, '?batch=10')
  t.match(body.messages, [{ id: kept }])
  t.equal(body.messages.length, 1)
  const held = await api.del(`/messages/${kept}`)
  t.match(held, { status: 409, body: { code: 'message_leased' } })
  t.ok(Date.parse(held.body.leaseExpiresAt) > Date.now())
  await api.ack(body.messages[0])
  t.match(await api.del(`/messages/${kept}`), { status: 409, body: { code: 'message_finished' } })
  t.equal((await api.pop(queue, '?wait=true&timeout=500')).status, 204)
})

test('an id that is not known is 404', async (t) => {
  for (const id of ['x', '019a0000-0000-7000-8000-000000000000', 'a'.repeat(36)]) {
    for (const answer of [
      await api.get(`/messages/${id}`),
      await api.del(`/messages/${id}`),
      await api.post(`/messages/${id}/run-now`),
    ]) {
      t.match(answer, { status: 404, body: { code: 'not_found' } }, id)
    }
  }
})

test('a list filters by state, page by page', async (t) => {
  const queue = unique()
  const ids: string[] = []
  for (let n = 1; n <= 7; n += 1) ids.push(await push({ queue, payload: n }))
  const { body } = await api.pop(queue, '?batch=2')
  await api.post('/ack', { receipt: body.messages[0].receipt })
  await api.del(`/messages/${ids[6]}`)
  const all = async (state: string) => {
    const found: string[] = []
    let cursor = ''
    for (;;) {
      const page = (await api.get(`/messages?queue=${queue}&state=${state}&limit=2${cursor}`)).body
      found.push(
        ...page.messages.map((message: { id: string; state: string }) => {
          t.equal(message.state, state)
          return message.id
        }),
      )
      if (page.cursor === null) return found
      cursor = `&cursor=${page.cursor}`
    }
  }
  t.same(await all('completed'), ids.slice(0, 1))
  t.same(await all('leased'), ids.slice(1, 2))
  t.same(await all('ready'), ids.slice(2, 6))
  t.same(await all('cancelled'), ids.slice(6))
  t.same(await all('scheduled'), [])
  t.match(await api.get(`/messages?queue=${queue}&state=no`), { status: 400 })
  t.match(await api.get(`/messages?queue=${queue}&state=ready&status=pending`), { status: 400 })
})

test('messages of a state are cancelled page by page, and counted in a dry run', async (t) => {
  const queue = unique()
  await api.push(...[1, 2, 3, 4, 5].map((payload) => ({ queue, payload })))
  await api.push(...[6, 7].map((payload) => ({ queue, payload, delayMs: 60_000 })))
  await api.pop(queue)
  const cancel = async (query: string) => (await api.del(`/messages?queue=${queue}&${query}`)).body
  t.same(await cancel('state=ready&dryRun=true'), { matched: 4, cancelled: 0, cursor: null })
  const first = await cancel('state=ready&limit=3')
  t.match(first, { matched: 3, cancelled: 3, cursor: /^log-/ })
  t.match(await cancel(`state=ready&limit=3&cursor=${first.cursor}`), { matched: 1, cancelled: 1 })
  t.same(await cancel('state=scheduled'), { matched: 2, cancelled: 2, cursor: null })
  t.same(await cancel('state=ready'), { matched: 0, cancelled: 0, cursor: null })
  for (const state of ['leased', 'completed', 'cancelled', 'no']) {
    t.equal((await api.del(`/messages?queue=${queue}&state=${state}`)).status, 400, state)
  }
  t.equal((await api.del(`/messages?queue=${queue}`)).status, 400, 'without a state')
  t.equal((await api.get(`/queues/${queue}`)).body.ready, 0)
})

test('a list of a time span begins at its first message', async (t) => {
  const queue = unique()
  await api.push(...Array.from({ length: 40 }, (_, n) => ({ queue, payload: n })))
  await node.database.pool.query(
    `update rouse.messages m set created_at = timestamptz '2026-01-01Z' + m.seq * interval '1 minute'
     from rouse.partitions p join rouse.queues q on q.id = p.queue_id
     where m.partition_id = p.id and q.name = $1`,
    [queue],
  )
  const span = 'from=2026-01-01T00:11:00Z&to=2026-01-01T00:13:00Z'
  const { messages, cursor } = (await api.get(`/messages?queue=${queue}&limit=5&${span}`)).body
  t.same(
    messages.map(({ data }: { data: number }) => data),
    [10, 11, 12],
  )
  t.equal(cursor, null)
})

test('a late attempt of a push is a duplicate of its cancelled repeat', async (t) => {
  const cancels = {
    'by its id': (_: string, id: string) => api.del(`/messages/${id}`),
    'by a filter': (queue: string) =>
      api.del(`/messages?queue=${queue}&state=${queue.endsWith('later') ? 'scheduled' : 'ready'}`),
  }
  for (const [how, cancel] of Object.entries(cancels)) {
    for (const delayMs of [0, 60_000]) {
      const queue = `${unique()}-${delayMs > 0 ? 'later' : 'now'}`
      const item = { queue, payload: 1, dedupeKey: 'k', delayMs }
      const id = await push(item)
      t.equal((await cancel(queue, id)).status, 200)
      t.match((await api.push(item)).body, [{ status: 'duplicate', id }], `${how}, ${delayMs} ms`)
      t.equal((await api.pop(queue)).status, 204)
    }
  }
})
