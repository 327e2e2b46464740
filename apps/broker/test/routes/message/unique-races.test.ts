// Unique keys on two nodes at once: producers of one key, a replace beside a pop, and everything that releases a key.
import { eventually, testDatabase } from '@rouse/testkit'
import { t as root, type Test, test } from 'tap'
import { startCluster } from '../../support/cluster.ts'
import { apiOf } from '../../support/http.ts'
import { unique } from '../../support/shared-broker.ts'

const database = await testDatabase(root as unknown as Test, { instrumented: true })
const cluster = await startCluster(root as unknown as Test, { nodes: 2, database })
const apis = cluster.map(({ url }) => apiOf(url))
const [api, other] = apis as [(typeof apis)[0], (typeof apis)[0]]

const keyed = (queue: string, payload: unknown, key: object = {}, more: object = {}) => ({
  queue,
  payload,
  unique: { key: 'k', ...key },
  ...more,
})

/** Repeats a push while it is refused because the key stays locked for too long, as clients do. */
async function pushed(at: typeof api, item: object): Promise<{ status: string; id: string }> {
  for (;;) {
    const { status, body } = await at.push(item)
    if (status !== 503) return body[0]
  }
}

/** Resolves when this many calls wait for locks, at a barrier or for another call. */
const waiting = (count: number) =>
  eventually(async () => {
    const { rows } = await database.pool.query(
      `select from pg_stat_activity
       where datname = current_database() and wait_event_type = 'Lock' and query like '%rouse.push%'`,
    )
    return rows.length >= count
  })

test('of 32 producers on two nodes, each in a partition of its own, one stores its message', async (t) => {
  const queue = unique()
  // The key exists and is free: only its lock decides between calls in different partitions.
  const { body: before } = await api.push(keyed(queue, 'before', {}, { partition: 'before' }))
  const { body: first } = await other.pop(queue)
  t.equal((await api.ack(first.messages[0])).status, 200)
  const locked = await database.armBarrier('unique-keys-locked')
  const pushes = Array.from({ length: 32 }, (_, i) =>
    pushed(i % 2 === 0 ? api : other, keyed(queue, i, {}, { partition: `p${i}` })),
  )
  await locked.reached(1)
  // A call of the other node waits for the key; without its lock it would be at the barrier, too.
  await waiting(2)
  await locked.release()
  const items = await Promise.all(pushes)
  t.equal(items.filter(({ status }) => status === 'queued').length, 1)
  t.equal(items.filter(({ status }) => status === 'duplicate').length, 31)
  t.equal(new Set(items.map(({ id }) => id)).size, 1, 'all name the one that was stored')
  t.not(items[0]?.id, before[0].id)
  const { body } = await other.pop(queue, '?batch=40&partitions=40')
  t.equal(body.messages.length, 1)
  t.equal(body.messages[0].id, items[0]?.id)
})

test('a replace on one node never changes what the other one delivers', async (t) => {
  for (let round = 0; round < 25; round += 1) {
    const queue = unique()
    const { body: stored } = await api.push(keyed(queue, 'old'))
    const [popped, pushed] = await Promise.all([
      other.pop(queue),
      api.push(keyed(queue, 'new', { onConflict: 'replace' })),
    ])
    const { body: late } =
      popped.status === 200 ? popped : await other.pop(queue, '?wait=true&timeout=20000')
    const [got] = late.messages
    const [{ status }] = pushed.body
    t.match(got, { id: stored[0].id, data: status === 'replaced' ? 'new' : 'old' }, status)
    t.equal((await api.get(`/messages/${got.id}`)).body.data, got.data)
    // Delivered, and replaced afterwards: the new one is another message.
    const { body: again } = await api.push(keyed(queue, 'third', { onConflict: 'replace' }))
    t.equal(again[0].status, status === 'queued' ? 'replaced' : 'queued')
    t.equal((await api.get(`/messages/${got.id}`)).body.data, got.data, 'it does not change')
  }
})

const endings: Record<string, (queue: string, id: string) => Promise<unknown>> = {
  'its completion': async (queue) => api.ack((await other.pop(queue)).body.messages[0]),
  'its dead letter': async (queue) => api.ack((await other.pop(queue)).body.messages[0], 'dlq'),
  'its cancellation': (_, id) => other.del(`/messages/${id}`),
  'a purge': (queue) => other.post(`/queues/${queue}/purge`),
}
for (const [ending, end] of Object.entries(endings)) {
  test(`${ending} releases the key, on both nodes`, async (t) => {
    const queue = unique()
    const { body: first } = await api.push(keyed(queue, 1))
    t.equal((await other.push(keyed(queue, 2))).body[0].status, 'duplicate')
    await end(queue, first[0].id)
    const { body: next } = await other.push(keyed(queue, 3))
    t.equal(next[0].status, 'queued')
    t.match((await api.push(keyed(queue, 4))).body, [{ status: 'duplicate', id: next[0].id }])
  })
}

test('ttlMs releases the key, on both nodes', async (t) => {
  const queue = unique()
  const { body: first } = await api.push(keyed(queue, 1, {}, { ttlMs: 3_000 }))
  t.match((await other.push(keyed(queue, 2))).body, [{ status: 'duplicate', id: first[0].id }])
  await eventually(async () => (await other.push(keyed(queue, 3))).body[0].status === 'queued', {
    timeoutMs: 20_000,
  })
  const { body } = await api.pop(queue, '?batch=10')
  t.match(body.messages, [{ data: 3 }])
  t.equal(body.messages.length, 1)
})
