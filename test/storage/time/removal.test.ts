// Purges and deletions are short calls. Rows that they leave to background steps are invisible to all other
// calls.
import {
  ack,
  deleteGroup,
  deleteQueue,
  enqueue,
  promoteDue,
  promotePartition,
  promoteScheduled,
  purge,
  push,
  reapExpired,
  release,
} from '@rouse/storage'
import { test } from 'tap'
import { inconsistencies } from '../support/consistency.ts'
import { removeAll, step } from '../support/removal-steps.ts'
import {
  finish,
  item,
  message,
  openStorage,
  payloads,
  type Storage,
  start,
} from '../support/storage.ts'

test('after a purge a key is stored again: pushed, scheduled, or enqueued in SQL', async (t) => {
  const storage = await openStorage(t)
  const { advanceClock, freezeClock, pool, take } = storage
  await freezeClock(start)
  const pushed = () => push(pool, [message('q', 'p', 'pushed', { transactionId: 'pushed' })])
  const delayed = () =>
    push(pool, [message('q', 'p', 'delayed', { transactionId: 'delayed', delayMs: 10_000 })])
  const enqueued = () =>
    enqueue(pool, { queue: 'q', partition: 'p', payload: '"sql"', transactionId: 'sql' })
  const pushAll = async () => {
    await enqueued()
    await promoteDue(pool)
    return [(await pushed()).items, (await delayed()).items].flat().map(({ status }) => status)
  }
  t.same(await pushAll(), ['queued', 'scheduled'])
  t.same(await pushAll(), ['duplicate', 'duplicate'])
  t.equal(await purge(pool, 'q'), 3)
  t.same(await pushAll(), ['queued', 'scheduled'], 'before any step')
  t.same(await pushAll(), ['duplicate', 'duplicate'], 'and remembered again')
  await removeAll(storage)
  t.same(await pushAll(), ['duplicate', 'duplicate'], 'steps forget the old keys only')
  await advanceClock(10_000)
  await promoteDue(pool)
  t.same(payloads(await take('q', { batch: 9 })), ['sql', 'pushed', 'delayed'])
})

test('the keys of consumed messages count after their rows are gone', async (t) => {
  const storage = await openStorage(t)
  const { pool, rows, take } = storage
  const pushed = () => push(pool, [message('q', 'p', 1, { transactionId: 'k' })])
  await pushed()
  await take('q', { autoAck: true })
  await rows('update rouse.partitions set tail = head')
  await rows('delete from rouse.messages')
  t.match((await pushed()).items, [{ status: 'duplicate' }])
})

test('steps remove the rows of a purged queue, and nothing else', async (t) => {
  const storage = await openStorage(t)
  const { pool, rows, send, take } = storage
  const many = Array.from({ length: 2_500 }, (_, n) =>
    message('q', 'p', n, { transactionId: `key ${n}` }),
  )
  await push(pool, many)
  await push(pool, [message('other', 'p', 'stays', { transactionId: 'key 1' })])
  await take('q', { batch: 10 })
  t.equal(await purge(pool, 'q'), 2_500)
  await send('q', 'p', ['new'])
  t.ok((await removeAll(storage)) > 0)
  t.same(await rows('select payload from rouse.messages order by 1'), [
    { payload: '"new"' },
    { payload: '"stays"' },
  ])
  t.same(await rows('select key from rouse.dedup'), [{ key: 'key 1' }])
  t.same(payloads(await take('q', { batch: 9 })), ['new'])
  t.same(await inconsistencies(pool), [])
})

test('a dead letter redriven after a purge survives its steps', async (t) => {
  const storage = await openStorage(t)
  const { lease, pool, rows, send, take } = storage
  await send('q', 'p', ['dead', 'purged'])
  await ack(pool, [item(await lease('q'), 0, 'dlq')])
  t.equal(await purge(pool, 'q'), 2)
  await rows(`select rouse.redrive('q')`)
  await removeAll(storage)
  const again = await lease('q')
  t.same(payloads(again), ['dead'])
  await removeAll(storage)
  await finish(pool, again)
  t.same((await take('q')).status, 'empty')
  t.same(await inconsistencies(pool), [])
})

test('a redriven dead letter survives the steps of a purge after the ordering changed', async (t) => {
  const storage = await openStorage(t)
  const { lease, pool, rows, send, set, take } = storage
  await send('q', 'p', ['dead', 'purged'])
  await ack(pool, [item(await lease('q'), 0, 'dlq')])
  await purge(pool, 'q')
  await set('q', { ordering: 'none' })
  await rows(`select rouse.redrive('q')`)
  const { leaseId } = await lease('q')
  await removeAll(storage)
  await release(pool, [leaseId])
  t.same(payloads(await take('q')), ['dead'])
  t.same(await inconsistencies(pool), [])
})

test('a redrive beside a step of a purge keeps its message', async (t) => {
  const storage = await openStorage(t)
  const { armBarrier, lease, pool, rows, send } = storage
  await send('q', 'p', ['dead'])
  await ack(pool, [item(await lease('q'), 0, 'dlq')])
  await purge(pool, 'q')
  const redriving = await armBarrier('redrive-locked')
  const redriven = rows(`select rouse.redrive('q')`)
  await redriving.reached()
  // The step finds the partition locked and skips it.
  await step(storage)
  await redriving.release()
  await redriven
  await removeAll(storage)
  t.same(payloads(await lease('q')), ['dead'])
})

test('the name of a deleted queue is free at once, and steps remove the rest', async (t) => {
  const storage = await openStorage(t)
  const { lease, pool, rows, send, take } = storage
  await push(pool, [
    message('q', 'p', 'old', { transactionId: 'k' }),
    message('q', 'p', 'late', { delayMs: 60_000 }),
    message('q', 'p2', 'dead'),
  ])
  await ack(pool, [item(await lease('q', { partition: 'p2' }), 0, 'dlq')])
  await ack(pool, [item(await lease('q', { partition: 'p' }), 0, 'failed')])
  const [old] = await rows<{ id: number }>('select id from rouse.queues')
  t.equal(await deleteQueue(pool, 'q'), true)
  t.equal(await deleteQueue(pool, 'q'), false)
  const { items } = await push(pool, [message('q', 'p', 'new', { transactionId: 'k' })])
  t.match(items, [{ status: 'queued' }])
  const [fresh] = await rows<{ id: number }>('select id from rouse.queues')
  t.not(fresh?.id, old?.id)
  t.same(payloads(await take('q', { batch: 9 })), ['new'])
  t.same(await rows(`select from rouse.dead_letters('q')`), [])
  await removeAll(storage)
  t.same(await rows('select payload from rouse.messages'), [{ payload: '"new"' }])
  for (const [table, count] of Object.entries({
    queues: 1,
    partitions: 1,
    groups: 1,
    lanes: 1,
    leases: 1,
    redeliveries: 0,
    attempts: 0,
    dead_letters: 0,
    dedup: 1,
    scheduled: 0,
  })) {
    t.equal((await rows(`select from rouse.${table}`)).length, count, table)
  }
  await send('q', 'p', ['more'])
  t.same(await inconsistencies(pool), [])
})

test('the deletion of a queue does not wait for a promoter of it, and removes what it added', async (t) => {
  const storage = await openStorage(t)
  const { advanceClock, armBarrier, freezeClock, pool, rows, send, take } = storage
  await freezeClock(start)
  await send('q', 'p', [1])
  await push(pool, [message('q', 'p', 'due', { delayMs: 1_000 })])
  // The lane is now leased and drained, so the promoter has to write it after the deletion.
  await take('q')
  await advanceClock(1_000)
  const promoting = await armBarrier('promote-taken')
  const promoted = promoteDue(pool)
  await promoting.reached()
  t.equal(await deleteQueue(pool, 'q'), true)
  await promoting.release()
  await promoted
  await removeAll(storage)
  t.same(await rows('select from rouse.messages union all select from rouse.scheduled'), [])
})

test('a group created again starts over, and steps remove the lanes of the deleted one', async (t) => {
  const storage = await openStorage(t)
  const { lease, pool, rows, send, take } = storage
  await send('q', 'p', [1, 2])
  await ack(pool, [item(await lease('q'), 0, 'failed')])
  t.equal(await deleteGroup(pool, 'q', 'g'), true)
  t.same(payloads(await take('q', { batch: 9 })), [1, 2])
  await removeAll(storage)
  t.equal((await rows('select from rouse.lanes')).length, 1)
  t.same(await rows('select from rouse.redeliveries'), [])
  t.same(await inconsistencies(pool), [])
})

for (const [name, end] of [
  [
    'reaped',
    async ({ advanceClock, pool }) => {
      await advanceClock(3_600_000)
      await reapExpired(pool)
    },
  ],
  [
    'given back',
    async ({ pool, rows }) => {
      const found = await rows<{ id: string }>('select id from rouse.leases')
      await release(
        pool,
        found.map(({ id }) => id),
      )
    },
  ],
  [
    'failed',
    async ({ pool, rows }) => {
      const found = await rows<{ id: string }>('select id from rouse.leases')
      await ack(
        pool,
        found.map(({ id }) => ({ leaseId: id, status: 'failed' as const })),
      )
    },
  ],
] as [string, (storage: Storage) => Promise<void>][]) {
  test(`a lease of a pop in progress while its queue was deleted is ${name}`, async (t) => {
    const storage = await openStorage(t)
    const { armBarrier, freezeClock, pool, rows, send, take } = storage
    await freezeClock(start)
    await send('q', 'p', [1])
    await send('other', 'p', [1])
    await take('q', { autoAck: true })
    await send('q', 'p', [2])
    await take('other')
    const popping = await armBarrier('pop-lane-leased')
    const popped = take('q')
    await popping.reached()
    t.equal(await deleteQueue(pool, 'q'), true)
    await popping.release()
    await popped
    await end(storage)
    await removeAll(storage)
    t.same(await inconsistencies(pool), [])
    t.equal((await rows('select from rouse.partitions')).length, 1)
  })
}

test('pushes to the new queue of a name do not wait for steps that remove the old one', async (t) => {
  const storage = await openStorage(t)
  const { armBarrier, pool, send, take } = storage
  await send('q', 'p', ['old'])
  await take('q')
  await deleteQueue(pool, 'q')
  await send('q', 'p', ['new'])
  const removing = await armBarrier('removal-step-written')
  const removed = removeAll(storage)
  await removing.reached()
  await send('q', 'p', ['newer'])
  await removing.release()
  await removed
  t.same(payloads(await take('q', { batch: 9 })), ['new', 'newer'])
})

test('a queue deleted with many scheduled messages leaves none to its successor', async (t) => {
  const storage = await openStorage(t)
  const { freezeClock, pool, rows, send, take } = storage
  await freezeClock(start)
  await send('q', 'p', ['old'])
  await rows(
    `insert into rouse.scheduled (queue, partition, due_at, message_id, payload, origin, created_at)
     select 'q', 'p', $1, gen_random_uuid(), '"scheduled"', 'broker', $1 from generate_series(1, 20001)`,
    [new Date(start)],
  )
  await deleteQueue(pool, 'q')
  await freezeClock(start + 1_000)
  await send('q', 'p', ['new'])
  await promoteDue(pool)
  t.same(payloads(await take('q', { batch: 9 })), ['new'])
  await removeAll(storage)
  t.same(await rows('select from rouse.scheduled'), [])
})

test('a queue deleted with many scheduled messages is not created again when they are due', async (t) => {
  const storage = await openStorage(t)
  const { begin, freezeClock, pool, rows, send, take } = storage
  await freezeClock(start)
  await send('q', 'p', ['old'])
  await rows(
    `insert into rouse.scheduled (queue, partition, due_at, message_id, payload, origin, created_at)
     select 'q', 'p', $1, gen_random_uuid(), '"scheduled"', 'broker', $1 from generate_series(1, 20001)`,
    [new Date(start)],
  )
  const producer = await begin()
  await enqueue(producer, { queue: 'q', partition: 'p', payload: '"later"' })
  await deleteQueue(pool, 'q')
  await freezeClock(start + 1_000)
  await promoteScheduled(pool)
  t.same(await promotePartition(pool, { queue: 'q', partition: 'p' }, { limit: 9, lockMs: 9 }), [])
  t.same(await rows('select from rouse.queues'), [])
  const before = (await rows('select from rouse.scheduled')).length
  t.ok(before < 20_001 && before > 0, 'what is due is taken off in steps')
  while ((await rows('select from rouse.scheduled')).length > 0) await promoteDue(pool)
  t.same(await rows('select from rouse.queues'), [])
  await producer.query('commit')
  await promoteDue(pool)
  t.same(
    payloads(await take('q', { batch: 9 })),
    ['later'],
    'a message committed later creates it again',
  )
})

test('only one node at a time runs a step, and the next node repeats the step of one that dies', async (t) => {
  const storage = await openStorage(t)
  const { begin, pool, rows, send } = storage
  await send('q', 'p', [1, 2])
  await deleteQueue(pool, 'q')
  const dying = await begin()
  t.equal((await dying.query(`select * from rouse.removal_step('dying')`)).rows.length, 1)
  t.same(await rows(`select * from rouse.removal_step('other')`), [])
  await dying.query('rollback')
  t.equal((await rows('select from rouse.messages')).length, 2)
  await removeAll(storage)
  t.same(await rows('select from rouse.messages'), [])
})
