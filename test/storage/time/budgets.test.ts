// Steps of background jobs do not wait for locks: they skip locked queues, partitions and rows. The work of
// each step is limited.
import { randomUUID } from 'node:crypto'
import { isCompletionGroup } from '@rouse/protocol'
import {
  ack,
  ackIn,
  enqueue,
  promoteDue,
  promotePartition,
  promoteScheduled,
  push,
  reapExpired,
  reapStep,
} from '@rouse/storage'
import { test } from 'tap'
import { inconsistencies } from '../support/consistency.ts'
import { item, message, openStorage, payloads, type Storage, start } from '../support/storage.ts'

/** Long enough for a call that does not wait for a lock, and too short for one that does. */
const promptMs = 5_000

async function prompt<T>(call: Promise<T>): Promise<T> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error('it waits for a lock')), promptMs)
  })
  return Promise.race([call, late]).finally(() => clearTimeout(timer))
}

/** Adds scheduled rows that are due at a given time, as delayed pushes would. */
async function schedule(
  { rows }: Storage,
  queue: string,
  { count, dueMs, partitions = 1 }: { count: number; dueMs: number; partitions?: number },
): Promise<void> {
  await rows(
    `insert into rouse.scheduled (queue, partition, due_at, message_id, payload, origin, created_at)
     select $1, 'p' || n % $2, to_timestamp($3::float8 / 1000), gen_random_uuid(), n::text, 'broker', rouse.now()
     from generate_series(1, $4::integer) n`,
    [queue, partitions, dueMs, count],
  )
}

async function lockRow(storage: Storage, sql: string) {
  const client = await storage.begin()
  await client.query(`${sql} for update`)
  return client
}

test('a locked queue holds up neither retries nor delayed messages of others', async (t) => {
  const storage = await openStorage(t)
  const { advanceClock, freezeClock, lease, pool, send, take } = storage
  await freezeClock(start)
  await send('a', 'p', [1])
  await send('b', 'p', ['retried'])
  await ack(pool, [item(await lease('b'), 0, 'failed', { delayMs: 300 })])
  await push(pool, [message('b', 'other', 'delayed', { delayMs: 300 })])
  const purging = await lockRow(storage, "select from rouse.queues where name = 'a'")
  await enqueue(pool, { queue: 'a', partition: 'new', payload: '2' })
  await advanceClock(400)
  await prompt(promoteDue(pool))
  const got = await take('b', { batch: 9, partitions: 9 })
  t.same(new Set(payloads(got)), new Set(['delayed', 'retried']))
  await purging.query('commit')
  t.match(await promoteDue(pool), [{ queue: 'a', partition: 'new', count: 1 }])
})

test('a locked partition with many due rows does not hide those of others', async (t) => {
  const storage = await openStorage(t)
  const { freezeClock, pool, send } = storage
  await freezeClock(start)
  await send('a', 'p0', [1])
  for (const queue of ['b', 'c', 'd']) await send(queue, 'p0', [1])
  await schedule(storage, 'b', { count: 1, dueMs: start - 2_000 })
  await schedule(storage, 'a', { count: 700, dueMs: start - 1_500 })
  await schedule(storage, 'c', { count: 1, dueMs: start - 1_000 })
  await schedule(storage, 'a', { count: 700, dueMs: start - 500 })
  await schedule(storage, 'd', { count: 1, dueMs: start - 100 })
  await lockRow(
    storage,
    "select from rouse.partitions p join rouse.queues q on q.id = p.queue_id where q.name = 'a'",
  )
  const woken = await prompt(promoteDue(pool))
  t.same(woken.map(({ queue }) => queue).toSorted(), ['b', 'c', 'd'])
})

test('a burst of one queue does not delay messages of another that fall due later', async (t) => {
  const storage = await openStorage(t)
  const { freezeClock, pool, send } = storage
  await freezeClock(start)
  await send('b', 'p0', [1])
  await schedule(storage, 'a', { count: 5_000, dueMs: start - 1_000, partitions: 50 })
  await schedule(storage, 'b', { count: 1, dueMs: start - 1 })
  const woken = await promoteDue(pool, 1_000)
  t.match(
    woken.filter(({ queue }) => queue === 'b'),
    [{ count: 1 }],
  )
})

test('a step of promotion moves at most its limit of rows, and reports that there is more', async (t) => {
  const storage = await openStorage(t)
  const { freezeClock, pool, rows } = storage
  await freezeClock(start)
  await schedule(storage, 'a', { count: 3_000, dueMs: start, partitions: 100 })
  const woken = await promoteDue(pool, 200)
  const moved = woken.reduce((sum, { count = 0 }) => sum + count, 0)
  t.ok(moved > 0 && moved <= 200, `${moved} rows`)
  let isMore = true
  for (let steps = 0; isMore && steps < 200; steps += 1) {
    ;({ isMore } = await promoteScheduled(pool, 200))
  }
  t.same(await rows('select from rouse.scheduled'), [], 'all are moved by the time it says no more')
  const order = await rows<{ sorted: boolean }>(
    `select array_agg(payload::integer order by seq) = array_agg(payload::integer order by payload::integer) as sorted
     from rouse.messages group by partition_id`,
  )
  t.equal(order.length, 100)
  t.ok(
    order.every(({ sorted }) => sorted),
    'in order in every partition',
  )
})

test('a partition whose rows cannot be moved is named and blocks no other', async (t) => {
  const storage = await openStorage(t)
  const { freezeClock, pool, rows, send } = storage
  await freezeClock(start)
  for (const queue of ['a', 'b']) await send(queue, 'p0', [1])
  await schedule(storage, 'a', { count: 1, dueMs: start })
  await schedule(storage, 'b', { count: 1, dueMs: start })
  await rows(
    `insert into rouse.messages (partition_id, seq, id, created_at, payload)
     select p.id, p.head, gen_random_uuid(), rouse.now(), '0' from rouse.partitions p join rouse.queues q on q.id = p.queue_id
     where q.name = 'a'`,
  )
  const { woken, failed } = await promoteScheduled(pool)
  t.match(woken, [{ queue: 'b', count: 1 }])
  t.match(failed, [{ queue: 'a', partition: 'p0', reason: /^23505: / }])
})

test('a locked partition is named, and a promotion that waits for it succeeds', async (t) => {
  const storage = await openStorage(t)
  const { freezeClock, pool, send, take, waiting } = storage
  await freezeClock(start)
  await send('a', 'p0', ['first'])
  await schedule(storage, 'a', { count: 2, dueMs: start })
  const holder = await lockRow(storage, 'select from rouse.partitions')
  const { locked } = await prompt(promoteScheduled(pool))
  t.same(locked, [{ queue: 'a', partition: 'p0' }])
  const patient = promotePartition(
    pool,
    { queue: 'a', partition: 'p0' },
    { limit: 10, lockMs: 60_000 },
  )
  await waiting()
  await holder.query('commit')
  t.match(await patient, [{ queue: 'a', partition: 'p0', count: 2 }])
  t.same(payloads(await take('a', { batch: 9 })), ['first', 1, 2])
  const again = await lockRow(storage, 'select from rouse.partitions')
  await t.rejects(
    promotePartition(pool, { queue: 'a', partition: 'p0' }, { limit: 10, lockMs: 20 }),
    { code: '55P03' },
  )
  await again.query('rollback')
})

test('an open ack_in over a thousand leases does not stop the reaping of others', async (t) => {
  const storage = await openStorage(t)
  const { advanceClock, begin, freezeClock, pool, rows, send, take } = storage
  await freezeClock(start)
  await push(
    pool,
    Array.from({ length: 1_000 }, (_, n) => message('wide', `p${n}`, n)),
  )
  const { leases } = await take('wide', { batch: 1_000, partitions: 1_000, leaseMs: 1_000 })
  t.equal(leases.length, 1_000)
  const consumer = await begin()
  for (const { leaseId, partitionId } of leases) {
    await ackIn(consumer, leaseId, { partitionId, seq: 1 })
  }
  await send('other', 'p', ['expired'])
  await take('other', { leaseMs: 2_000 })
  await advanceClock(5_000)
  t.match(await prompt(reapExpired(pool)), [{ queue: 'other' }])
  await consumer.query('rollback')
  while ((await reapStep(pool)).isMore);
  t.same(await rows('select from rouse.leases'), [])
  t.same(await inconsistencies(pool), [])
})

test('a step of reaping ends after a bounded number of messages, and reports that there is more', async (t) => {
  const storage = await openStorage(t)
  const { advanceClock, freezeClock, pool, rows, take } = storage
  await freezeClock(start)
  await push(
    pool,
    Array.from({ length: 1_000 }, (_, n) => message('wide', `p${n % 20}`, n)),
  )
  await take('wide', { batch: 1_000, partitions: 20, leaseMs: 1_000 })
  await advanceClock(2_000)
  const first = await reapStep(pool, 100)
  const lanes = first.woken.filter(({ group }) => !isCompletionGroup(group ?? ''))
  t.equal(lanes.length, 2, 'two leases of 50 messages')
  t.equal(first.isMore, true)
  while ((await reapStep(pool, 100)).isMore);
  t.same(await rows('select from rouse.leases'), [])
  t.same(await inconsistencies(pool), [])
})

test('redeliveries of one lane are announced in steps', async (t) => {
  const storage = await openStorage(t)
  const { advanceClock, freezeClock, lease, pool, rows, set } = storage
  await freezeClock(start)
  await set('q', { onFailure: 'skip' })
  await storage.send(
    'q',
    'p',
    Array.from({ length: 300 }, (_, n) => n),
  )
  const held = await lease('q', { batch: 300 })
  await ack(
    pool,
    held.messages.map((_, at) => item(held, at, 'failed', { delayMs: 1_000 })),
  )
  await advanceClock(1_000)
  await promoteDue(pool, 100)
  t.match(await rows('select count(*) as n from rouse.redeliveries where announced'), [
    { n: '100' },
  ])
  while ((await promoteDue(pool, 100)).length > 0);
  t.match(await rows('select count(*) as n from rouse.redeliveries where announced'), [
    { n: '300' },
  ])
})

test('a redrive whose partition is locked does not stop another redrive', async (t) => {
  const storage = await openStorage(t)
  const { freezeClock, lease, pool, rows, send } = storage
  await freezeClock(start)
  for (const queue of ['a', 'b']) {
    await send(queue, 'p', [1])
    await ack(pool, [item(await lease(queue), 0, 'dlq')])
  }
  for (const queue of ['a', 'b']) {
    await rows("select from rouse.start_redrive($1, $2, '{}', null)", [randomUUID(), queue])
  }
  await lockRow(
    storage,
    "select from rouse.partitions p join rouse.queues q on q.id = p.queue_id where q.name = 'a'",
  )
  for (const step of [1, 2]) await prompt(rows(`select from rouse.redrive_step('n${step}')`))
  const states = await rows('select queue, state, moved from rouse.redrives order by queue')
  t.match(states, [
    { queue: 'a', state: 'running', moved: '0' },
    { queue: 'b', state: 'done', moved: '1' },
  ])
})
