// Messages by their ids, options of single messages, and results.
import { eventually } from '@rouse/testkit'
import { test } from 'tap'
import { fromPg } from '../src/sql/index.ts'
import { clientOf, sharedCluster, unique } from './support/cluster.ts'

const { urls, database } = await sharedCluster()

test('a message is found, run now and cancelled by the id of its push', async (t) => {
  const rouse = clientOf(t, urls)
  const queue = rouse.queue(unique())
  const { id } = await queue.push({ n: 1 }, { delay: '1h' })
  t.match(await rouse.messages.get(id), { id, state: 'scheduled', data: { n: 1 }, groups: [] })
  const listed = []
  for await (const one of rouse.messages.list({ queue: queue.name, state: 'scheduled' })) {
    listed.push(one.id)
  }
  t.same(listed, [id])
  await rouse.messages.cancel(id)
  t.equal((await rouse.messages.get(id)).state, 'cancelled')
  await t.rejects(rouse.messages.runNow(id), { code: 'not_scheduled' })

  const later = await queue.push({ n: 2 }, { delay: '1h' })
  await rouse.messages.runNow(later.id)
  const worker = queue.work({}, async () => {})
  const ended = await rouse.messages.wait(later.id, { timeout: '20s', consumerGroup: 'default' })
  t.equal(ended.state, 'completed')
  await worker.stop()
  await t.rejects(rouse.messages.cancel(later.id), { code: 'message_finished' })
})

test('a result is kept with its message, and those who wait get it', async (t) => {
  const rouse = clientOf(t, urls)
  const queue = rouse.queue(unique())
  const { id } = await queue.push({ to: 'ann' })
  const waiting = rouse.messages.wait(id, { timeout: '20s', consumerGroup: 'default' })
  const worker = queue.work({}, async (_message, context) => {
    await context.ack({ result: { sent: [1, 2] } })
  })
  t.match(await waiting, { state: 'completed', result: { sent: [1, 2] } })
  await worker.stop()
})

test('a message waits for nothing longer than the timeout', async (t) => {
  const rouse = clientOf(t, urls)
  const { id } = await rouse.queue(unique()).push({})
  t.equal((await rouse.messages.wait(id, { timeout: 50 })).state, 'ready')
})

test('options of single messages are sent in the units of the API', async (t) => {
  const rouse = clientOf(t, urls)
  const queue = rouse.queue(unique())
  const options = { priority: 7, retryLimit: 2, retryBackoff: ['1s', '1m'], ttl: '1h' } as const
  const { id } = await queue.push({ n: 1 }, options)
  const own = { priority: 7, retryLimit: 2, retryBackoffMs: [1_000, 60_000] }
  t.match(await rouse.messages.get(id), own)
  const stored = await queue.pushIn(fromPg(database.pool), { n: 2 }, options)
  await eventually(async () => (await rouse.messages.get(stored.id)).state === 'ready')
  t.match(await rouse.messages.get(stored.id), own)
})

test('one message at a time has a unique key', async (t) => {
  const rouse = clientOf(t, urls)
  const queue = rouse.queue(unique())
  const key = 'welcome-42'
  const first = await queue.push({ n: 1 }, { unique: { key } })
  const again = await queue.push({ n: 2 }, { unique: { key } })
  t.match(again, { id: first.id, status: 'duplicate' })
  const replaced = await queue.push({ n: 3 }, { unique: { key, onConflict: 'replace' } })
  t.match(replaced, { id: first.id, status: 'replaced' })
  t.match(await rouse.messages.get(first.id), { data: { n: 3 } })
  const refused = queue.push({ n: 4 }, { unique: { key, onConflict: 'reject' } })
  const beside = queue.push({ n: 7 })
  const behind = queue.push({ n: 8 })
  await t.rejects(refused, { code: 'unique_conflict' })
  t.same([(await beside).status, (await behind).status], ['queued', 'queued'], 'in one request')
  const window = { key: 'hourly', until: { window: '1h' } } as const
  await queue.push({ n: 5 }, { unique: window })
  t.match(await queue.push({ n: 6 }, { unique: window }), { status: 'duplicate' })
})
