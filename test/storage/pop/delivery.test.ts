// What a pop delivers: to which waiter, from which lane, in which order, and which messages it does not
// deliver.
import { ack, configure, type Lease, pop, promoteDue, push, setPaused } from '@rouse/storage'
import { test } from 'tap'
import {
  demand,
  finish,
  item,
  message,
  openStorage,
  payloads,
  refusal,
  type Storage,
  start,
} from '../support/storage.ts'

function dealt(leases: readonly Lease[]): [number, string | null][] {
  return leases.map(({ demand: waiter, partition }) => [waiter, partition])
}

test('each of several waiters gets one lane before any gets a second', async (t) => {
  const { pool, send } = await openStorage(t)
  for (const partition of ['a', 'b', 'c', 'd']) await send('q', partition, [1, 2])
  const { leases } = await pop(pool, {
    source: { queue: 'q' },
    group: 'g',
    demands: [
      demand({ batch: 9, partitions: 3 }),
      demand({ batch: 9, partitions: 3 }),
      demand({ batch: 9 }),
    ],
  })
  t.same(dealt(leases), [
    [0, 'a'],
    [1, 'b'],
    [2, 'c'],
    [0, 'd'],
  ])
  t.equal(new Set(leases.map(({ leaseId }) => leaseId)).size, 3, 'a lease a waiter')
})

test('the oldest waiter is served first if there are too few messages', async (t) => {
  const { pool, send } = await openStorage(t)
  await send('q', 'a', [1, 2, 3])
  const { leases } = await pop(pool, {
    source: { queue: 'q' },
    group: 'g',
    demands: [demand({ batch: 2 }), demand({ batch: 2 })],
  })
  t.same(dealt(leases), [[0, 'a']])
  t.same(payloads({ leases }), [1, 2])
})

test('with ordering none several waiters share one lane', async (t) => {
  const { pool, send, set } = await openStorage(t)
  await set('q', { ordering: 'none' })
  await send('q', 'a', [1, 2, 3, 4, 5])
  const { leases } = await pop(pool, {
    source: { queue: 'q' },
    group: 'g',
    demands: [demand({ batch: 2 }), demand({ batch: 2 }), demand({ batch: 2 })],
  })
  t.same(
    leases.map((lease) => [lease.demand, payloads(lease)]),
    [
      [0, [1, 2]],
      [1, [3, 4]],
      [2, [5]],
    ],
  )
})

test('every waiter has its own batch size, lease time and name', async (t) => {
  const { freezeClock, pool, rows, send } = await openStorage(t)
  await freezeClock(start)
  await send('q', 'a', [1, 2, 3])
  await send('q', 'b', [1, 2, 3])
  const { leases } = await pop(pool, {
    source: { queue: 'q' },
    group: 'g',
    demands: [
      demand({ batch: 1, leaseMs: 1_000, holder: 'one' }),
      demand({ batch: 3, holder: 'two' }),
    ],
  })
  t.match(leases, [
    { messages: { length: 1 }, expiresAtMs: start + 1_000 },
    { messages: { length: 3 }, expiresAtMs: start + 300_000 },
  ])
  t.same(await rows('select holder from rouse.leases order by 1'), [
    { holder: 'one' },
    { holder: 'two' },
  ])
})

test('a batch is filled from several lanes, each in its own order', async (t) => {
  const { send, take } = await openStorage(t)
  await send('q', 'a', ['a1', 'a2'])
  await send('q', 'b', ['b1', 'b2'])
  t.same(payloads(await take('q', { batch: 3, partitions: 2 })), ['a1', 'a2', 'b1'])
})

test('a pop of one partition takes from no other', async (t) => {
  const { send, take } = await openStorage(t)
  await send('q', 'a', ['a'])
  await send('q', 'b', ['b'])
  t.same(payloads(await take('q', { partition: 'b', batch: 9, partitions: 9 })), ['b'])
  t.equal((await take('q', { partition: 'b' })).status, 'empty')
  t.equal((await take('q', { partition: 'nowhere' })).status, 'empty')
  t.same(payloads(await take('q', { partition: 'a' })), ['a'])
})

async function threeQueues({ pool }: Storage): Promise<void> {
  for (const [queue, task, priority] of [
    ['low', 'mail', 1],
    ['high', 'mail', 9],
    ['other', 'print', 5],
  ] as const) {
    await configure(pool, { queue, namespace: 'shop', task, options: { priority } })
    await push(pool, [message(queue, 'p', queue)])
  }
}

test('a pop of a namespace takes from the queue of the highest priority first', async (t) => {
  const storage = await openStorage(t)
  await threeQueues(storage)
  const order: unknown[] = []
  for (let i = 0; i < 3; i += 1) {
    const { leases } = await pop(storage.pool, {
      source: { namespace: 'shop' },
      group: 'g',
      demands: [demand({})],
    })
    order.push(...payloads({ leases }))
  }
  t.same(order, ['high', 'other', 'low'])
})

test('a pop of a task, or of a task in a namespace, takes from its queues only', async (t) => {
  const storage = await openStorage(t)
  await threeQueues(storage)
  const popAll = async (source: { namespace?: string; task?: string }) =>
    (await pop(storage.pool, { source, group: 'g', demands: [demand({}), demand({}), demand({})] }))
      .leases
  t.same(
    (await popAll({ task: 'print' })).map(({ queue }) => queue),
    ['other'],
  )
  t.same((await popAll({ namespace: 'elsewhere', task: 'mail' })).length, 0)
  t.same(
    (await popAll({ namespace: 'shop', task: 'mail' })).map(({ queue }) => queue),
    ['high', 'low'],
  )
  t.same(await popAll({}), [], 'neither names nothing')
})

test('a message acknowledged at delivery is not leased and not delivered again', async (t) => {
  const { rows, send, take } = await openStorage(t)
  await send('q', 'p', [1, 2])
  t.same(payloads(await take('q', { autoAck: true })), [1])
  t.same(await rows('select from rouse.leases'), [])
  t.same(payloads(await take('q', { autoAck: true })), [2])
  t.equal((await take('q')).status, 'empty')
})

test('one waiter of a pop may acknowledge at delivery and another not', async (t) => {
  const { pool, rows, send } = await openStorage(t)
  await send('q', 'a', [1])
  await send('q', 'b', [2])
  const demands = [demand({ autoAck: true }), demand({})]
  const { leases } = await pop(pool, { source: { queue: 'q' }, group: 'g', demands })
  t.same(payloads({ leases }), [1, 2])
  t.equal((await rows('select from rouse.leases')).length, 1)
})

test('a paused queue accepts pushes and acks but delivers nothing until resumed', async (t) => {
  const { lease, pool, send, take } = await openStorage(t)
  await send('q', 'p', [1])
  const held = await lease('q')
  t.same(await setPaused(pool, 'q', true), [])
  await send('q', 'p', [2])
  t.equal((await take('q')).status, 'paused')
  t.same((await finish(pool, held)).rejected, [])
  t.equal((await take('q', { partition: 'p', batch: 9, partitions: 9 })).status, 'paused')
  t.match(await setPaused(pool, 'q', false), [{ queue: 'q' }])
  t.same(payloads(await take('q')), [2])
  t.match(await refusal(setPaused(pool, 'nowhere', true)), { state: 'RS404' })
})

test('a paused queue does not stop others of its namespace', async (t) => {
  const storage = await openStorage(t)
  await threeQueues(storage)
  await setPaused(storage.pool, 'high', true)
  const { leases } = await pop(storage.pool, {
    source: { namespace: 'shop' },
    group: 'g',
    demands: [demand({})],
  })
  t.same(payloads({ leases }), ['other'])
})

test('a window buffer holds a lane until it has been quiet, then delivers everything', async (t) => {
  const { advanceClock, freezeClock, pool, send, set, take } = await openStorage(t)
  await freezeClock(start)
  await set('q', { windowBuffer: 10 })
  await send('q', 'p', [1])
  t.equal((await take('q', { batch: 9 })).status, 'empty')
  await advanceClock(6_000)
  await send('q', 'p', [2])
  await advanceClock(6_000)
  await promoteDue(pool)
  t.equal((await take('q', { batch: 9 })).status, 'empty', 'the second push restarted the window')
  await advanceClock(4_000)
  t.match(await promoteDue(pool), [{ queue: 'q', partition: 'p', group: 'g' }])
  t.same(payloads(await take('q', { batch: 9 })), [1, 2])
})

for (const option of ['ttl', 'maxWaitTimeSeconds']) {
  test(`a message older than ${option} is no longer delivered`, async (t) => {
    const { advanceClock, freezeClock, send, set, take } = await openStorage(t)
    await freezeClock(start)
    await set('q', { [option]: 10 })
    await send('q', 'p', ['old'])
    await advanceClock(5_000)
    await send('q', 'p', ['young'])
    await advanceClock(5_001)
    t.same(payloads(await take('q', { batch: 9 })), ['young'])
  })
}

test('headers, keys, trace ids and payloads come out exactly as they went in', async (t) => {
  const { lease, pool } = await openStorage(t)
  const payload = '{ "b": 1,  "a": [1e400, "\\u00e9", 12345678901234567890] }'
  const rest = { headers: '{"h":"v"}', traceId: 'trace', transactionId: 'key' }
  const sent = { ...message('q', 'p', null, rest), payload }
  await push(pool, [sent, message('q', 'p', 2)])
  const { messages } = await lease('q', { batch: 2 })
  t.match(messages, [
    { payload, ...rest, id: sent.id },
    { payload: '2', headers: null, traceId: null, transactionId: null },
  ])
})

test('a call returns wake hints for the lanes that it opened', async (t) => {
  const { lease, pool } = await openStorage(t)
  await configure(pool, { queue: 'q', namespace: 'n', task: 't', options: {} })
  const names = { queue: 'q', partition: 'p', namespace: 'n', task: 't' }
  const pushed = await push(pool, [
    message('q', 'p', 1),
    message('q', 'p', 2),
    message('q', 'o', 1),
  ])
  t.match(pushed.woken, [
    { ...names, group: null, count: 2 },
    { ...names, partition: 'o', count: 1 },
  ])
  const held = await lease('q', { partition: 'p' })
  t.match((await ack(pool, [item(held)])).woken, [{ ...names, group: 'g', count: 1 }])
  await lease('q', { partition: 'p' }).then((last) => finish(pool, last))
  const other = await lease('q', { partition: 'o' })
  t.match(
    (await finish(pool, other)).woken,
    [{ partition: 'o', group: 'g', count: 0 }],
    'free always',
  )
})
