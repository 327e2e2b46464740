// Rule 21 of docs/storage.md: which lanes are ordered, and what changes of `ordering` do to leases.
import {
  ack,
  enqueue,
  type Lease,
  pop,
  promoteDue,
  push,
  reapExpired,
  release,
  transaction,
} from '@rouse/storage'
import { eventually } from '@rouse/testkit'
import { type Test, test } from 'tap'
import {
  finish,
  item,
  message,
  openStorage,
  payloads,
  refusal,
  type Storage,
  start,
} from '../support/storage.ts'

/** The lane of the independent messages. */
const reserved = '\u001f0'

/** Messages 1 to `count` without a partition, and a group that exists. */
async function openIndependent(t: Test, count: number): Promise<Storage> {
  const storage = await openStorage(t)
  const numbers = Array.from({ length: count }, (_, i) => i + 1)
  await storage.send('q', undefined, numbers)
  await storage.take('q', { partition: 'nowhere' })
  return storage
}

test('messages without a partition are leased at the same time, a partition has one lease', async (t) => {
  const { lane, lease, send, take } = await openIndependent(t, 3)
  await send('q', 'Default', [4, 5])
  const held = [await lease('q'), await lease('q'), await lease('q'), await lease('q')]
  t.same(new Set(held.flatMap(payloads)), new Set([1, 2, 3, 4]))
  t.same(new Set(held.map(({ partition }) => partition)), new Set([null, 'Default']))
  t.match(await take('q', { batch: 9, partitions: 9 }), { status: 'empty' }, '5 waits for 4')
  t.equal((await lane(reserved)).lease_id, null)
  t.notSame((await lane('Default')).lease_id, null)
})

test('several waiters of one call share the independent messages', async (t) => {
  const { pool, take } = await openIndependent(t, 3)
  const demands = ['a', 'b'].map((holder) => ({ batch: 1, partitions: 1, holder }))
  const { leases } = await pop(pool, { source: { queue: 'q' }, group: 'g', demands })
  t.same(
    leases.map((one) => [one.demand, payloads(one), one.partition]),
    [
      [0, [1], null],
      [1, [2], null],
    ],
  )
  t.same(payloads(await take('q', { batch: 5, partitions: 5 })), [3])
})

test('an independent message that failed delays no other, and is redelivered when it is due', async (t) => {
  const storage = await openIndependent(t, 4)
  const { advanceClock, freezeClock, lane, lease, pool, rows, set, take } = storage
  await freezeClock(start)
  await set('q', { retryBackoffMs: [30_000], onFailure: 'hold' })
  const first = await lease('q')
  await ack(pool, [item(first, 0, 'failed')])
  t.equal((await lane(reserved)).blocked_until, null)
  t.same(payloads(await lease('q')), [2], 'the short path')
  t.same(payloads(await lease('q', { partitions: 2 })), [3], 'the general path')
  t.same(payloads(await lease('q', { partitions: 2 })), [4])
  t.match(await take('q'), { status: 'empty' })
  t.equal((await lane(reserved)).ready, false)
  await advanceClock(30_000)
  await promoteDue(pool)
  t.match(await lease('q'), { attempt: 2, partition: null })
  t.same(await rows('select from rouse.redeliveries'), [])
})

test('two pops at once of the independent messages deliver each of them once', async (t) => {
  for (const barrier of [
    'pop-lane-locked',
    'pop-lane-offered',
    'pop-lane-settling',
    'pop-lane-leased',
  ]) {
    const { armBarrier, rows, take } = await openIndependent(t, 2)
    const popping = await armBarrier(barrier)
    const first = take('q')
    await popping.reached()
    t.match(await take('q'), { status: 'contended', leases: [] }, barrier)
    await popping.release()
    t.same(payloads(await first), [1])
    t.same(payloads(await take('q')), [2])
    t.equal((await rows('select from rouse.leases where not ordered')).length, 2)
  }
})

test('an ack of a middle message waits for no pop, and leaves the others leased', async (t) => {
  const { armBarrier, lease, pool, take } = await openIndependent(t, 5)
  const held = await lease('q', { batch: 3 })
  const popping = await armBarrier('pop-lane-leased')
  const next = take('q')
  await popping.reached()
  t.match(await ack(pool, [item(held, 1)]), { rejected: [], woken: [] })
  await popping.release()
  t.same(payloads(await next), [4])
  t.match(await ack(pool, [item(held, 1)]), { rejected: [0] })
  t.match(await ack(pool, [item(held, 0), item(held, 2)]), { rejected: [] })
  t.same(payloads(await take('q', { batch: 9 })), [5])
})

test('a release with holes returns what was not acknowledged, and nothing twice', async (t) => {
  const { armBarrier, lease, pool, rows, take, waiting } = await openIndependent(t, 6)
  const first = await lease('q', { batch: 3 })
  const second = await lease('q', { batch: 2 })
  await ack(pool, [item(first, 1)])
  const popping = await armBarrier('pop-lane-offered')
  const third = take('q')
  await popping.reached()
  const given = release(pool, [first.leaseId, second.leaseId])
  await waiting()
  await popping.release()
  t.same(payloads(await third), [6])
  t.match(await given, { woken: [{ partition: reserved }, { partition: reserved }] })
  const again: unknown[] = []
  for (let i = 0; i < 9; i += 1) again.push(...payloads(await take('q', { batch: 9 })))
  t.equal(again.length, 4)
  t.same(new Set(again), new Set([1, 3, 4, 5]))
  t.same(await rows('select from rouse.redeliveries'), [])
})

test('a lease of independent messages that expires beside a pop comes back one by one', async (t) => {
  const { advanceClock, armBarrier, freezeClock, lease, pool, rows, send, take } =
    await openIndependent(t, 3)
  await freezeClock(start)
  const held = await lease('q', { batch: 2, leaseMs: 1_000 })
  await send('q', undefined, [4])
  await advanceClock(1_000)
  const popping = await armBarrier('pop-lane-offered')
  const next = take('q')
  await popping.reached()
  await reapExpired(pool)
  t.equal((await rows('select from rouse.leases')).length, 1, 'its lane is locked: later')
  await popping.release()
  t.same(payloads(await next), [3])
  await reapExpired(pool)
  t.match(await ack(pool, [item(held)]), { rejected: [0] })
  const [one, two, three] = [
    await lease('q', { batch: 9 }),
    await lease('q', { batch: 9 }),
    await lease('q'),
  ]
  t.same([one, two, three].map(payloads), [[1], [2], [4]])
  t.same([one?.attempt, two?.attempt, three?.attempt], [2, 2, 1])
})

for (const [ordering, open] of [
  ['keyed', [[3]]],
  ['none', [[3], [4]]],
] as const) {
  test(`an ordered lease keeps its partition closed after the ordering became ${ordering}`, async (t) => {
    const { lane, lease, pool, send, set, take } = await openStorage(t)
    await set('q', { ordering: 'partition' })
    await send('q', 'p', [1, 2, 3, 4])
    const held = await lease('q', { batch: 2 })
    await set('q', { ordering })
    t.match(await take('q', { batch: 9 }), { status: 'empty' })
    await ack(pool, [item(held, 1)])
    t.match(await take('q', { batch: 9 }), { status: 'empty' })
    await ack(pool, [item(held, 0)])
    t.equal((await lane('p')).lease_id, null)
    const found = [await take('q'), await take('q')].filter(({ status }) => status === 'messages')
    t.same(found.map(payloads), open)
  })
}

test('a failure of a lease from before the ordering was loosened delays no other message', async (t) => {
  const { freezeClock, lane, lease, pool, send, set } = await openStorage(t)
  await freezeClock(start)
  await set('q', { ordering: 'partition', retryBackoffMs: [30_000] })
  await send('q', 'p', [1, 2])
  const held = await lease('q')
  await set('q', { ordering: 'none' })
  await ack(pool, [item(held, 0, 'failed')])
  t.match(await lane('p'), { blocked_until: null, lease_id: null })
  t.same(payloads(await lease('q')), [2])
})

test('a stricter ordering is refused for partitions that are leased without order, and only for these', async (t) => {
  const { lease, pool, send, set, take } = await openIndependent(t, 2)
  const held = await lease('q')
  await send('q', 'p', [3])
  t.same(payloads(await lease('q', { partition: 'p' })), [3])
  await set('q', { ordering: 'none' })
  await set('q', { ordering: 'keyed' })
  t.match(await refusal(set('q', { ordering: 'partition' })), {
    state: 'RS409',
    detail: { code: 'queue_in_use', field: 'ordering' },
  })
  await finish(pool, held)
  await set('q', { ordering: 'partition' })
  await send('q', undefined, [4])
  t.same(payloads(await lease('q')), [2], 'in order now')
  t.match(await take('q', { partition: 'p' }), { status: 'empty' })
  t.same(payloads(await take('q')), [4], 'in Default')
  t.match(await take('q'), { status: 'empty' })
})

for (const barrier of ['pop-lane-offered', 'pop-lane-leased', 'pop-offered']) {
  test(`a pop at ${barrier} that leases without order keeps its partition from becoming ordered`, async (t) => {
    const { armBarrier, rows, set, take, waiting } = await openIndependent(t, 2)
    const popping = await armBarrier(barrier)
    const first = take('q', barrier === 'pop-offered' ? { partitions: 2 } : {})
    await popping.reached()
    const change = refusal(set('q', { ordering: 'partition' }))
    await waiting()
    await popping.release()
    t.equal((await first).status, 'messages')
    t.match(await change, { state: 'RS409', detail: { code: 'queue_in_use' } })
    t.same(await rows('select ordering from rouse.queues'), [{ ordering: 'keyed' }])
  })
}

for (const partitions of [1, 2]) {
  test(`a pop that began before the ordering changed leases by the new one: partitions ${partitions}`, async (t) => {
    const { armBarrier, lane, set, take } = await openIndependent(t, 2)
    const popping = await armBarrier('pop-begun')
    const first = take('q', { partitions })
    await popping.reached()
    await set('q', { ordering: 'partition' })
    await popping.release()
    const { leases } = await first
    t.same(payloads(leases[0] as Lease), [1])
    t.equal((await lane(reserved)).lease_id, leases[0]?.leaseId)
    t.match(await take('q'), { status: 'empty' })
  })
}

test('a pop of several partitions that began before the ordering ended leases without it', async (t) => {
  const { armBarrier, lane, send, set, take } = await openStorage(t)
  for (const partition of ['p', 'q']) await send('q', partition, [1])
  await take('q', { partition: 'nowhere' })
  const popping = await armBarrier('pop-begun')
  const first = take('q', { batch: 2, partitions: 2 })
  await popping.reached()
  await set('q', { ordering: 'none' })
  await popping.release()
  t.same(payloads(await first), [1, 1])
  t.equal((await lane()).lease_id, null)
})

for (const ordering of ['partition', 'none']) {
  test(`with ordering ${ordering} a message without a partition is in Default`, async (t) => {
    const { freezeClock, pool, set, take } = await openStorage(t)
    await freezeClock(start)
    await set('q', { ordering })
    const keyed = (partition: string | undefined, payload: number, rest: object = {}) =>
      message('q', partition, payload, { transactionId: `k${payload}`, ...rest })
    const items = [
      keyed(undefined, 1),
      keyed('p', 2),
      keyed('Default', 3),
      keyed('Default', 1),
      keyed(undefined, 4, { delayMs: 1_000 }),
      keyed(undefined, 5),
    ]
    const { items: pushed, woken } = await push(pool, items)
    const inDefault = { partition: 'Default' }
    t.match(pushed, [
      { status: 'queued', seq: 1, ...inDefault },
      { status: 'queued', seq: 1, partition: 'p' },
      { status: 'queued', seq: 3, ...inDefault },
      { status: 'duplicate', messageId: items[0]?.id, ...inDefault },
      { status: 'scheduled', ...inDefault },
      { status: 'queued', seq: 2, ...inDefault },
    ])
    t.same(
      woken.map(({ partition, count }) => [partition, count]),
      [
        ['Default', 2],
        ['p', 1],
        ['Default', 1],
      ],
    )
    t.same(payloads(await take('q', { batch: 9, partition: 'Default' })), [1, 5, 3])
  })
}

test('a bad message of a call that names Default and no partition is reported by its own position', async (t) => {
  const { pool, set } = await openStorage(t)
  await set('q', { ordering: 'partition' })
  const items = [
    message('q', undefined, 1),
    message('q', 'p', 2, { delayMs: -1 }),
    message('q', 'Default', 3),
    message('q', undefined, 4),
  ]
  t.match(await refusal(push(pool, items)), { state: 'RS400', detail: { item: 2 } })
})

test('the hint of independent messages names their lane, which no waiter of a partition waits for', async (t) => {
  const { lease, pool, send } = await openStorage(t)
  t.match((await send('q', undefined, [1])).woken, [{ partition: reserved, count: 1 }])
  const held = await lease('q')
  const { woken } = await release(pool, [held.leaseId])
  t.match(woken, [{ partition: reserved }])
})

test('a transaction pushes independent messages', async (t) => {
  const { lease, pool, take } = await openIndependent(t, 1)
  const held = await lease('q')
  const pushes = [message('q', undefined, 2), message('fresh', undefined, 3), message('q', 'p', 4)]
  const { pushed, woken } = await transaction(pool, { acks: [item(held)], pushes })
  t.match(pushed, [{ partition: null }, { partition: null }, { partition: 'p' }])
  t.same(
    woken.map(({ queue, partition }) => [queue, partition]),
    [
      ['q', reserved],
      ['q', 'p'],
      ['fresh', reserved],
    ],
  )
  t.same(new Set(payloads(await take('q', { batch: 9, partitions: 9 }))), new Set([2, 4]))
})

test('a transaction names Default and no partition of a queue that is not keyed', async (t) => {
  const { lease, pool, send, set, take } = await openStorage(t)
  await set('q', { ordering: 'partition' })
  await send('q', 'p', [1])
  const held = await lease('q')
  const pushes = [message('q', undefined, 2), message('q', 'Default', 3)]
  await transaction(pool, { acks: [item(held)], pushes })
  t.same(payloads(await take('q', { batch: 9 })), [2, 3])
})

test('a SQL producer that names no partition sends independent messages', async (t) => {
  const { lease, pool, rows, set } = await openStorage(t)
  await set('ordered', { ordering: 'partition' })
  for (const queue of ['q', 'ordered']) {
    await enqueue(pool, { queue, payload: '1' })
    await rows(`select rouse.enqueue($1, '2')`, [queue])
    await rows(`select rouse.enqueue($1, '3', partition => null)`, [queue])
  }
  await eventually(async () => {
    await promoteDue(pool)
    return (await rows('select from rouse.scheduled')).length === 0
  })
  const independent = [await lease('q'), await lease('q'), await lease('q')]
  t.same(independent.flatMap(payloads), [1, 2, 3])
  t.same(new Set(independent.map(({ partition }) => partition)), new Set([null]))
  t.match(await lease('ordered', { batch: 9 }), { partition: 'Default', messages: { length: 3 } })
})

test('no user can name the lane of the independent messages', async (t) => {
  const { pool, rows } = await openIndependent(t, 1)
  const invalid = { state: 'RS400', detail: { code: 'invalid_name', field: 'partition' } }
  t.match(await refusal(enqueue(pool, { queue: 'q', payload: '1', partition: reserved })), invalid)
  t.match(await refusal(push(pool, [message('q', '\u001fa', 1)])), invalid)
  t.equal((await rows('select from rouse.partitions')).length, 1)
})

test('a queue keeps the ordering that it was created with', async (t) => {
  const { rows, send, set } = await openStorage(t)
  await send('q', 'p', [1])
  await rows(`update rouse.server_defaults set options = '{"ordering": "partition"}'`)
  await set('q', { priority: 1 })
  await send('later', undefined, [1])
  t.same(await rows('select name, ordering from rouse.queues order by name'), [
    { name: 'later', ordering: 'partition' },
    { name: 'q', ordering: 'keyed' },
  ])
  await set('q', { ordering: null })
  t.match(await rows(`select ordering from rouse.queues where name = 'q'`), [
    { ordering: 'partition' },
  ])
})
