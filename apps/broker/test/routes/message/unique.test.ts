// Unique keys over HTTP: on two nodes, in transactions, with clear errors.
import { eventually } from '@rouse/testkit'
import { t as root, type Test, test } from 'tap'
import { startCluster, startNode } from '../../support/cluster.ts'
import { apiOf, send } from '../../support/http.ts'
import { unique } from '../../support/shared-broker.ts'

const cluster = await startCluster(root as unknown as Test, { nodes: 2 })
const apis = cluster.map(({ url }) => apiOf(url))
const [api, other] = apis as [(typeof apis)[0], (typeof apis)[0]]

const keyed = (queue: string, payload: unknown, key: object = {}, more: object = {}) => ({
  queue,
  payload,
  unique: { key: 'k', ...key },
  ...more,
})

test('of 32 producers on two nodes one stores its message; after its completion the next one does', async (t) => {
  const queue = unique()
  for (const round of [1, 2]) {
    const answers = await Promise.all(
      Array.from({ length: 32 }, (_, i) => (i % 2 === 0 ? api : other).push(keyed(queue, i))),
    )
    t.ok(answers.every(({ status }) => status === 201))
    const items = answers.map(({ body }) => body[0])
    t.equal(items.filter(({ status }) => status === 'queued').length, 1, `round ${round}`)
    t.equal(items.filter(({ status }) => status === 'duplicate').length, 31)
    t.equal(new Set(items.map(({ id }) => id)).size, 1, 'all name the one that was stored')
    const { body } = await other.pop(queue, '?batch=10')
    t.equal(body.messages.length, 1)
    t.equal(body.messages[0].id, items[0].id)
    t.equal((await api.ack(body.messages[0])).status, 200)
  }
})

test('a message shows its unique key, and whether it has it now', async (t) => {
  const queue = unique()
  const { body: pushed } = await api.push(
    keyed(queue, 1, { until: { windowMs: 60_000 } }, { delayMs: 60_000 }),
  )
  const { body } = await other.get(`/messages/${pushed[0].id}`)
  const shown = { key: 'k', scope: 'queue', until: { windowMs: 60_000 }, held: true }
  t.same(body.unique, shown)
  t.equal(body.state, 'scheduled')
  await api.del(`/messages/${pushed[0].id}`)
  t.same((await api.get(`/messages/${pushed[0].id}`)).body.unique, { ...shown, held: false })
  const { body: plain } = await api.push({ queue, payload: 2 })
  t.equal((await api.get(`/messages/${plain[0].id}`)).body.unique, null)
})

test('a scheduled message that is replaced without a delay is delivered at once', async (t) => {
  const queue = unique()
  await api.push(keyed(queue, 'old', {}, { delayMs: 3_600_000 }))
  const waiting = other.pop(queue, '?wait=true&timeout=20000')
  const { body } = await api.push(keyed(queue, 'new', { onConflict: 'replace' }))
  t.equal(body[0].status, 'replaced')
  const { body: popped } = await waiting
  t.match(popped.messages, [{ id: body[0].id, data: 'new' }])
})

test('reject is 409 with the key and the holder, and nothing of the request is stored', async (t) => {
  const queue = unique()
  const { body: first } = await api.push(keyed(queue, 1))
  const refused = await other.push(
    { queue, payload: 'plain' },
    { queue: unique(), partition: 'x', payload: 'elsewhere' },
    keyed(queue, 2, { onConflict: 'reject' }),
  )
  t.match(refused, {
    status: 409,
    body: {
      code: 'unique_conflict',
      key: 'k',
      id: first[0].id,
      retryable: false,
      errors: [{ field: 'items[2].unique' }],
    },
  })
  const { body } = await api.pop(queue, '?batch=10')
  t.same(
    body.messages.map(({ data }: { data: unknown }) => data),
    [1],
  )
  const operations = [
    { type: 'ack', ...body.messages[0] },
    { type: 'push', items: [{ queue, payload: 3 }, keyed(queue, 4, { key: 'twice' })] },
    { type: 'push', items: [keyed(queue, 5, { key: 'twice', onConflict: 'reject' })] },
  ].map(({ type, items, receipt }: { type: string; items?: unknown; receipt?: string }) =>
    type === 'push' ? { type, items } : { type, receipt },
  )
  t.match(await api.post('/transaction', { operations }), {
    status: 409,
    body: { code: 'unique_conflict', errors: [{ field: 'operations[2].items[0].unique' }] },
  })
  const again = { type: 'push', items: [keyed(queue, 6)] }
  t.match(await api.post('/transaction', { operations: [operations[0], again] }), {
    status: 200,
    body: { results: [{ type: 'ack' }, { items: [{ status: 'queued' }] }] },
  })
})

test('wrong fields of a key are refused with what was meant', async (t) => {
  const cases: readonly [object, string, string | undefined][] = [
    [{ key: 'k', onConflct: 'ignore' }, 'items[0].unique.onConflct', 'onConflict'],
    [{ key: 'k', until: { window: 5 } }, 'items[0].unique.until.window', 'windowMs'],
    [{ name: 'k' }, 'items[0].unique.name', undefined],
    [{ key: 'k', until: 'done' }, 'items[0].unique.until', undefined],
    [{ key: 'k', until: { windowMs: 0 } }, 'items[0].unique.until.windowMs', undefined],
    [{ key: 'k', scope: 'all' }, 'items[0].unique.scope', undefined],
    [{ key: 'x'.repeat(256) }, 'items[0].unique.key', undefined],
    [{ key: 'ü'.repeat(128) }, 'items[0].unique.key', undefined],
    [{ key: 'a\u0007' }, 'items[0].unique.key', undefined],
    [{}, 'items[0].unique.key', undefined],
  ]
  for (const [key, field, suggestion] of cases) {
    const answer = await api.push({ queue: 'never', payload: 1, unique: key })
    t.match(answer, { status: 400, body: { errors: [{ field }] } }, JSON.stringify(key))
    t.equal(answer.body.errors[0].suggestion, suggestion)
  }
  t.equal((await send('GET', api.at('/queues/never'))).status, 404, 'nothing was stored')
  const nulls = { scope: null, until: null, onConflict: null }
  t.match(await api.push(keyed(unique(), 1, nulls)), { status: 201, body: [{ status: 'queued' }] })
})

test('a node that is killed and started again finds all keys', async (t) => {
  const queue = unique()
  const { body: first } = await api.push(keyed(queue, 1))
  const killed = await startNode(t, 7, { database: (cluster[0] as (typeof cluster)[0]).database })
  t.equal((await apiOf(killed.url).push(keyed(queue, 2))).body[0].status, 'duplicate')
  killed.child.kill('SIGKILL')
  await killed.exited
  const again = await startNode(t, 7, { database: killed.database })
  const { body } = await apiOf(again.url).push(keyed(queue, 3), keyed(queue, 4, { key: 'new' }))
  t.match(body, [{ status: 'duplicate', id: first[0].id }, { status: 'queued' }])
})

test('a SQL producer and a node compete for a key', async (t) => {
  const queue = unique()
  const { database } = cluster[0] as (typeof cluster)[0]
  const enqueue = (payload: unknown) =>
    database.pool.query('select rouse.enqueue_many($1)', [JSON.stringify([keyed(queue, payload)])])
  await enqueue(1)
  await eventually(async () => (await api.push(keyed(queue, 2))).body[0].status === 'duplicate')
  await enqueue(3)
  await enqueue(4)
  await eventually(async () => {
    const { rows } = await database.pool.query('select from rouse.scheduled where queue = $1', [
      queue,
    ])
    return rows.length === 0
  })
  const { body } = await other.pop(queue, '?batch=10')
  t.equal(body.messages.length, 1)
})
