// Other nodes redeliver the messages that were leased through a killed node when the leases expire, and not
// before. `npm run bench -- recovery` measures how soon after the expiry.
import { eventually, testDatabase } from '@rouse/testkit'
import { test } from 'tap'
import type { RunningBroker } from '../support/broker.ts'
import { startCluster, statsOf } from '../support/cluster.ts'
import { apiOf } from '../support/http.ts'
import { killTree } from '../support/process-tree.ts'

/** An interval of fallback polls that is too long for a poll to have woken a waiter. */
const never = '600000'
const env = {
  POP_WAIT_IDLE_INTERVAL_MS: never,
  POP_WAIT_BASE_INTERVAL_MS: never,
  POP_WAIT_MAX_INTERVAL_MS: never,
}
const timeout = 240_000
const patience = { timeoutMs: 60_000 }
const leaseSeconds = 600
const partitions = ['p0', 'p1', 'p2', 'p3']

test('messages leased through a killed node reach waiters of another node when their leases end', {
  timeout,
}, async (t) => {
  const database = await testDatabase(t)
  const cluster = await startCluster(t, { nodes: 2, database, env })
  const [a, b] = cluster as [RunningBroker, RunningBroker]
  const items = partitions.map((partition) => ({ queue: 'q', partition, payload: 1 }))
  await apiOf(a.url).push(...items)
  for (const _ of partitions) {
    const { body } = await apiOf(a.url).pop('q', `?batch=1&leaseSeconds=${leaseSeconds}`)
    t.equal(body.messages.length, 1)
  }
  const waiting = partitions.map(() => apiOf(b.url).pop('q', '?batch=1&wait=true&timeout=120000'))
  const waits = async () => (await statsOf(b.url)).waiting.total
  await eventually(async () => (await waits()) === partitions.length, patience)

  await killTree(a.child)
  await eventually(async () => (await statsOf(b.url)).mode.mode === 'aggressive', patience)
  await database.advanceClock((leaseSeconds - 120) * 1_000)
  t.equal(await waits(), partitions.length, 'the death of the node does not end its leases')

  const advancedAt = Date.now()
  await database.advanceClock(120_000)
  const answers = await Promise.all(waiting)
  t.comment(`all were redelivered ${Date.now() - advancedAt} ms after their leases had ended`)
  const messages = answers.flatMap(({ body }) => body?.messages ?? [])
  t.equal(messages.length, partitions.length)
  t.same(new Set(messages.map(({ partition }) => partition)), new Set(partitions))
  t.same(new Set(messages.map(({ attempt }) => attempt)), new Set([2]))
  const { wakes } = await statsOf(b.url)
  t.ok((wakes.timer ?? 0) > 0, 'woken by the timer for the end of the lease')
  t.equal(wakes.fallback, 0)
})
