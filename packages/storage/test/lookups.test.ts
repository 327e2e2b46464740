import {
  ack,
  configure,
  dueTimes,
  type Executor,
  groupsWithWork,
  pop,
  push,
  setPaused,
} from '@rouse/storage'
import { testDatabase } from '@rouse/testkit'
import { test } from 'tap'

let ids = 0
function message(queue: string, more: object = {}) {
  ids += 1
  const id = `00000000-0000-7000-8000-${ids.toString(16).padStart(12, '0')}`
  return { queue, partition: 'Default', id, payload: '1', ...more }
}

test('the fallback poll finds groups with work by queue, partition, namespace and task', async (t) => {
  const { pool } = await testDatabase(t)
  const executor = pool as unknown as Executor
  await configure(executor, { queue: 'full', namespace: 'ns', task: 'send', options: {} })
  await configure(executor, { queue: 'paused', options: {} })
  await configure(executor, { queue: 'empty', options: {} })
  await push(executor, [message('full', { partition: 'p' }), message('paused')])
  await setPaused(executor, 'paused', true)
  const group = 'g'
  const groups = [
    { source: { queue: 'full' }, group },
    { source: { queue: 'full', partition: 'p' }, group },
    { source: { queue: 'full', partition: 'other' }, group },
    { source: { queue: 'unknown' }, group },
    { source: { queue: 'empty' }, group },
    { source: { queue: 'paused' }, group },
    { source: { namespace: 'ns' }, group },
    { source: { task: 'send' }, group },
    { source: { namespace: 'ns', task: 'other' }, group },
  ]
  t.same(await groupsWithWork(pool, groups), [0, 1, 6, 7], 'the consumer group does not exist yet')

  const demands = [{ batch: 1, partitions: 1, holder: 't' }]
  const popped = await pop(executor, { source: { queue: 'full' }, group, demands })
  t.same(await groupsWithWork(pool, groups), [], 'leased')

  await push(executor, [message('full', { partition: 'q' })])
  t.same(await groupsWithWork(pool, groups), [0, 6, 7], 'another partition')

  await push(executor, [message('full', { partition: 'p' })])
  await ack(executor, [{ leaseId: popped.leases[0]?.leaseId as string }])
  t.same(await groupsWithWork(pool, groups), [0, 1, 6, 7], 'a freed lane with more messages')
  t.same(await groupsWithWork(pool, []), [])
})

test('a group at its in-flight limit has no work', async (t) => {
  const { pool } = await testDatabase(t)
  const executor = pool as unknown as Executor
  await pool.query(`select from rouse.configure('limited', null, null, '{"maxInFlight": 1}')`)
  await push(executor, [message('limited'), message('limited', { partition: 'other' })])
  const groups = [{ source: { queue: 'limited' }, group: 'g' }]
  t.same(await groupsWithWork(pool, groups), [0])
  const demands = [{ batch: 1, partitions: 1, holder: 't' }]
  const popped = await pop(executor, { source: { queue: 'limited' }, group: 'g', demands })
  t.same(await groupsWithWork(pool, groups), [])
  await ack(executor, [{ leaseId: popped.leases[0]?.leaseId as string }])
  t.same(await groupsWithWork(pool, groups), [0])
})

test('due times include leases and scheduled messages', async (t) => {
  const { pool, freezeClock, advanceClock } = await testDatabase(t)
  const executor = pool as unknown as Executor
  const start = Date.parse('2030-01-01T00:00:00Z')
  await freezeClock(start)
  await pool.query(`update rouse.chores set next_at = 'infinity'`)
  const nothing = { reap: [], promote: [], cron: [], retain: [], hasWindows: false }
  t.same(await dueTimes(pool, 1_500), {
    ...nothing,
    nowMs: start,
    completeUntilMs: start + 1_500,
  })
  await push(executor, [message('q'), message('q', { delayMs: 5_000 })])
  const demands = [{ batch: 1, partitions: 1, leaseMs: 2_000, holder: 't' }]
  await pop(executor, { source: { queue: 'q' }, group: 'g', demands })
  t.match(await dueTimes(pool, 1_500), nothing, 'beyond the horizon')
  t.match(await dueTimes(pool, 6_000), { reap: [start + 2_000], promote: [start + 5_000] })
  await advanceClock(5_000)
  t.match(await dueTimes(pool, 0), { reap: [start + 2_000], promote: [start + 5_000] }, 'overdue')
})

test('a truncated list reports how far it reaches', async (t) => {
  const { pool, freezeClock } = await testDatabase(t)
  const executor = pool as unknown as Executor
  const start = Date.parse('2030-01-01T00:00:00Z')
  await freezeClock(start)
  await push(
    executor,
    Array.from({ length: 250 }, (_, i) => message('q', { delayMs: 1 + i })),
  )
  const times = await dueTimes(pool, 1_500)
  t.equal(times.promote.length, 200)
  t.equal(times.completeUntilMs, start + 200)
})
