// Dedupe keys: within the dedupe window, a key belongs to one message of its partition.
import { enqueue, promoteDue, push } from '@rouse/storage'
import { test } from 'tap'
import { message, openStorage, payloads, refusal, start } from '../support/storage.ts'

const keyed = (payload: unknown, transactionId: string, rest: object = {}) =>
  message('q', 'p', payload, { transactionId, ...rest })

test('a key seen twice in one call is a duplicate of its first', async (t) => {
  const { pool, take } = await openStorage(t)
  const items = [keyed(1, 'a'), keyed(2, 'b'), keyed(3, 'a'), keyed(4, 'c'), keyed(5, 'a')]
  const { items: pushed, woken } = await push(pool, items)
  t.match(pushed, [
    { status: 'queued', seq: 1 },
    { status: 'queued', seq: 2 },
    { status: 'duplicate', messageId: items[0]?.id },
    { status: 'queued', seq: 3 },
    { status: 'duplicate', messageId: items[0]?.id },
  ])
  t.match(woken, [{ count: 3 }])
  t.same(payloads(await take('q', { batch: 9 })), [1, 2, 4])
})

test('a key seen in an earlier call is a duplicate, and returns no wake hint', async (t) => {
  const { pool, take } = await openStorage(t)
  const first = keyed(1, 'a')
  await push(pool, [first])
  const again = await push(pool, [keyed(2, 'a')])
  t.match(again, { items: [{ status: 'duplicate', messageId: first.id }], woken: [] })
  t.same(payloads(await take('q', { batch: 9 })), [1])
})

for (const [where, partitions] of [
  ['one partition', ['p']],
  ['several partitions', ['p', 'other']],
] as const) {
  test(`a call to ${where} that is repeated with the same ids stores nothing again`, async (t) => {
    const { pool, take } = await openStorage(t)
    const items = partitions.map((partition, i) =>
      message('q', partition, i, { transactionId: `k${i}` }),
    )
    t.match(
      (await push(pool, items)).items,
      partitions.map(() => ({ status: 'queued' })),
    )
    const duplicates = items.map(({ id }) => ({ status: 'duplicate', messageId: id }))
    t.match(await push(pool, items), { items: duplicates, woken: [] })
    const fresh = partitions.map((partition) =>
      message('q', partition, 9, { transactionId: 'new' }),
    )
    t.match((await push(pool, [...items, ...fresh])).items, [
      ...duplicates,
      ...partitions.map(() => ({ status: 'queued' })),
    ])
    t.match((await push(pool, items)).items, duplicates)
    const found = payloads(await take('q', { batch: 9, partitions: 2 }))
    t.same(found.length, 2 * partitions.length)
  })
}

test('the same key in another partition or queue is another message', async (t) => {
  const { pool } = await openStorage(t)
  const keyedAt = (queue: string, partition: string) =>
    message(queue, partition, 1, { transactionId: 'a' })
  const { items } = await push(pool, [keyedAt('q', 'p'), keyedAt('q', 'other'), keyedAt('r', 'p')])
  t.ok(items.every(({ status }) => status === 'queued'))
})

test('messages without a key are never duplicates', async (t) => {
  const { pool, take } = await openStorage(t)
  await push(pool, [message('q', 'p', 1), keyed(2, 'a'), message('q', 'p', 1)])
  t.same(payloads(await take('q', { batch: 9 })), [1, 2, 1])
})

test('a key is free again after its window', async (t) => {
  const { advanceClock, freezeClock, pool, set, take } = await openStorage(t)
  await freezeClock(start)
  await set('q', { dedupWindowSeconds: 60 })
  await push(pool, [keyed(1, 'a')])
  await advanceClock(59_999)
  t.match((await push(pool, [keyed(2, 'a')])).items, [{ status: 'duplicate' }])
  await advanceClock(1)
  const third = keyed(3, 'a')
  t.match((await push(pool, [third])).items, [{ status: 'queued' }])
  t.match((await push(pool, [keyed(4, 'a')])).items, [{ status: 'duplicate', messageId: third.id }])
  t.same(payloads(await take('q', { batch: 9 })), [1, 3])
})

test('a queue with a window of zero has no duplicates', async (t) => {
  const { pool, set, take } = await openStorage(t)
  await set('q', { dedupWindowSeconds: 0 })
  await push(pool, [keyed(1, 'a'), keyed(2, 'a')])
  await push(pool, [keyed(3, 'a')])
  t.same(payloads(await take('q', { batch: 9 })), [1, 2, 3])
})

test('a key whose message is still scheduled makes duplicates, before and after promotion', async (t) => {
  const { advanceClock, freezeClock, pool, take } = await openStorage(t)
  await freezeClock(start)
  const first = keyed(1, 'a', { delayMs: 1_000 })
  t.match((await push(pool, [first])).items, [{ status: 'scheduled' }])
  const duplicate = [{ status: 'duplicate', messageId: first.id }]
  t.match((await push(pool, [keyed(2, 'a')])).items, duplicate)
  t.match((await push(pool, [keyed(3, 'a', { delayMs: 5_000 })])).items, duplicate)
  await advanceClock(10_000)
  await promoteDue(pool)
  t.match((await push(pool, [keyed(4, 'a')])).items, duplicate)
  t.same(payloads(await take('q', { batch: 9 })), [1])
})

test('a mixed call sorts new, delayed and duplicate messages', async (t) => {
  const { pool, take } = await openStorage(t)
  const known = keyed('known', 'k')
  await push(pool, [known])
  const items = [
    keyed('later', 'l', { delayMs: 60_000 }),
    keyed('again', 'k'),
    message('q', 'p', 'plain'),
    message('q', 'other', 'elsewhere'),
    keyed('fresh', 'f'),
    keyed('later again', 'l'),
  ]
  const { items: pushed } = await push(pool, items)
  t.match(pushed, [
    { status: 'scheduled', messageId: items[0]?.id },
    { status: 'duplicate', messageId: known.id },
    { status: 'queued', seq: 2 },
    { status: 'queued', seq: 1 },
    { status: 'queued', seq: 3 },
    { status: 'duplicate', messageId: items[0]?.id },
  ])
  t.same(payloads(await take('q', { partition: 'p', batch: 9 })), ['known', 'plain', 'fresh'])
})

for (const [form, barrier, delayMs] of [
  ['short', 'push-inserted', undefined],
  ['general', 'push-general-inserted', 0],
] as const) {
  test(`two pushes of one key at the same moment add one message (${form} form)`, async (t) => {
    const { armBarrier, pool, take, waiting } = await openStorage(t)
    await push(pool, [message('q', 'p', 0)])
    const first = await armBarrier(barrier)
    const winner = push(pool, [keyed(1, 'a', { delayMs })])
    await first.reached()
    const loser = push(pool, [keyed(2, 'a', { delayMs })])
    await waiting()
    await first.release()
    t.match((await winner).items, [{ status: 'queued' }])
    t.match((await loser).items, [{ status: 'duplicate' }])
    t.same(payloads(await take('q', { batch: 9 })), [0, 1])
  })
}

test('a duplicate uses no space: a full queue returns its original', async (t) => {
  const { pool, rows, set } = await openStorage(t)
  await set('q', { maxSize: 3 })
  const first = keyed(1, 'a')
  const later = keyed(2, 'b', { delayMs: 60_000 })
  await push(pool, [first, keyed(1, 'a'), later, keyed(2, 'b'), keyed(3, 'c')])
  const { items, woken } = await push(pool, [keyed(4, 'a'), keyed(5, 'b', { delayMs: 1 })])
  t.match(items, [
    { status: 'duplicate', messageId: first.id },
    { status: 'duplicate', messageId: later.id },
  ])
  t.same(woken, [])
  await set('q', { maxSize: 1 })
  const mixed = await push(pool, [keyed(6, 'c'), message('other', 'p', 7)])
  t.match(mixed.items, [{ status: 'duplicate' }, { status: 'queued' }], 'fuller than full')
  t.equal((await rows('select from rouse.messages')).length, 3)
})

for (const [what, rest] of [
  ['new', {}],
  ['delayed', { delayMs: 60_000 }],
] as const) {
  test(`a full queue refuses a call of duplicates with one ${what} message as a whole, and does not keep its key`, async (t) => {
    const { pool, rows, set } = await openStorage(t)
    await set('q', { maxSize: 1 })
    await push(pool, [keyed(1, 'a')])
    const full = { state: 'RS429', detail: { code: 'queue_full', size: 1, maxSize: 1 } }
    t.match(await refusal(push(pool, [keyed(2, 'a'), keyed(3, 'b', rest)])), full)
    t.same(await rows('select key from rouse.dedup'), [{ key: 'a' }])
    await set('q', { maxSize: 2 })
    const { items } = await push(pool, [keyed(2, 'a'), keyed(3, 'b', rest), keyed(4, 'b')])
    const status = what === 'new' ? 'queued' : 'scheduled'
    t.match(items, [{ status: 'duplicate' }, { status }, { status: 'duplicate' }])
  })
}

test('two pushes of one key for the last free space add one message, and neither is refused', async (t) => {
  const { armBarrier, pool, set, waiting } = await openStorage(t)
  await set('q', { maxSize: 1 })
  const first = await armBarrier('push-general-inserted')
  const sent = keyed(1, 'a')
  const winner = push(pool, [sent])
  await first.reached()
  const loser = push(pool, [keyed(2, 'a')])
  await waiting()
  await first.release()
  t.match((await winner).items, [{ status: 'queued' }])
  t.match((await loser).items, [{ status: 'duplicate', messageId: sent.id }])
})

test('the key of a SQL producer counts when its message is promoted', async (t) => {
  const { pool, take } = await openStorage(t)
  const sql = (payload: string) =>
    enqueue(pool, { queue: 'q', partition: 'p', payload, transactionId: 'a' })
  await sql('1')
  await sql('2')
  await promoteDue(pool)
  await sql('3')
  await promoteDue(pool)
  t.match((await push(pool, [keyed(4, 'a')])).items, [{ status: 'duplicate' }])
  t.same(payloads(await take('q', { batch: 9 })), [1])
})
