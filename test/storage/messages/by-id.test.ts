import { messageIdAt, timeOfMessageId, withoutPlace } from '@rouse/protocol'
import { ack, enqueue, messageById, promoteDue, push, redrive } from '@rouse/storage'
import { test } from 'tap'
import { newId } from '../support/new-id.ts'
import { finish, item, message, openStorage, start } from '../support/storage.ts'

test('SQL and nodes derive the same id', async (t) => {
  const { rows } = await openStorage(t)
  const places: readonly [string, number][] = [
    ['1', 1],
    ['7', 42],
    [String(2 ** 31), 2 ** 31],
    [String(2n ** 62n), 1],
    [String(2n ** 15n - 1n), Number.MAX_SAFE_INTEGER],
    [String(2 ** 27), 2 ** 26 - 1],
    [String(2n ** 62n), 2 ** 40],
  ]
  for (const stored of [newId(), withoutPlace(newId()), '5b1d7c1e-8a34-4f0e-9d52-6a1f0c9d2e10']) {
    for (const [partitionId, seq] of places) {
      const [row] = await rows<{ id: string }>('select rouse.message_id($1, $2, $3) as id', [
        stored,
        partitionId,
        seq,
      ])
      t.equal(row?.id, messageIdAt(stored, partitionId, seq), `${stored} ${partitionId} ${seq}`)
    }
    const [row] = await rows<{ id: string }>('select rouse.message_id($1, 1, null) as id', [stored])
    t.equal(row?.id, withoutPlace(stored))
  }
})

test('the id that a push returns finds the message in every state, and is the id of the pop', async (t) => {
  const { advanceClock, freezeClock, lease, pool, set } = await openStorage(t)
  await freezeClock(start)
  await set('q', { retryLimit: 1, retryBackoffMs: [5_000] })
  const { items } = await push(pool, [
    message('q', 'p', 'plain', { id: newId() }),
    message('q', 'p', 'keyed', { id: newId(), transactionId: 'key' }),
  ])
  const [plain, keyed] = items.map(({ messageId }) => messageId) as [string, string]
  const status = async (id: string) => (await messageById(pool, id))?.groups[0]?.status
  t.match(await messageById(pool, plain), {
    id: plain,
    queue: 'q',
    partition: 'p',
    seq: 1,
    groups: [],
  })
  t.match(await messageById(pool, keyed), { id: keyed, transactionId: 'key', seq: 2 })
  const first = await lease('q', { batch: 2 })
  t.same(
    first.messages.map(({ id }) => id),
    [plain, keyed],
  )
  t.equal(await status(plain), 'leased')
  await ack(pool, [item(first, 0), item(first, 1, 'failed')])
  t.equal(await status(plain), 'completed')
  t.equal(await status(keyed), 'retrying')
  await advanceClock(5_000)
  await promoteDue(pool)
  const second = await lease('q')
  t.equal(second.messages[0]?.id, keyed)
  await ack(pool, [item(second, 0, 'failed')])
  t.equal(await status(keyed), 'dead')
  await pool.query('delete from rouse.messages')
  t.match(await messageById(pool, keyed), { id: keyed, payload: '"keyed"', seq: 2 })
  t.equal(await messageById(pool, plain), undefined)
  await redrive(pool, { queue: 'q' })
  t.equal(await status(keyed), 'retrying')
  const third = await lease('q')
  t.equal(third.messages[0]?.id, keyed, 'and after a redrive')
  await finish(pool, third)
})

test('a scheduled message keeps its id when it is promoted', async (t) => {
  const { advanceClock, freezeClock, lease, pool, rows } = await openStorage(t)
  await freezeClock(start)
  const { items } = await push(pool, [message('q', 'p', 1, { id: newId(), delayMs: 1_000 })])
  const pushed = items[0]?.messageId as string
  const enqueued = await enqueue(pool, { queue: 'q', payload: '2', partition: 'p' })
  for (const id of [pushed, enqueued]) {
    t.match(await messageById(pool, id), { id, queue: 'q', partition: 'p', seq: null })
  }
  await advanceClock(1_000)
  await promoteDue(pool)
  for (const id of [pushed, enqueued]) {
    t.match(await messageById(pool, id), { id, queue: 'q', partition: 'p' })
    t.not((await messageById(pool, id))?.seq, null)
  }
  const { createdAt } = (await messageById(pool, pushed)) as { createdAt: Date }
  t.equal(createdAt.getTime(), timeOfMessageId(pushed), 'the time of the push')
  t.same(
    new Set((await lease('q', { batch: 2 })).messages.map(({ id }) => id)),
    new Set([pushed, enqueued]),
  )
  t.equal((await rows('select from rouse.message_ids')).length, 2)
})

test('duplicates answer with the id of the original, wherever it is', async (t) => {
  const { advanceClock, freezeClock, pool } = await openStorage(t)
  await freezeClock(start)
  const keyed = (transactionId: string, delayMs?: number) =>
    message('q', 'p', transactionId, { id: newId(), transactionId, ...(delayMs && { delayMs }) })
  const ids = async (...items: ReturnType<typeof keyed>[]) =>
    (await push(pool, items)).items.map(({ messageId }) => messageId)
  const [log, sameCall, later, laterAgain] = await ids(
    keyed('a'),
    keyed('a'),
    keyed('b', 500),
    keyed('b', 500),
  )
  t.equal(sameCall, log)
  t.equal(laterAgain, later)
  t.same(await ids(keyed('a'), keyed('b')), [log, later])
  await advanceClock(500)
  await promoteDue(pool)
  t.same(await ids(keyed('b'), keyed('c'), keyed('a')), [later, (await ids(keyed('c')))[0], log])
})

test('ids of removed messages are forgotten', async (t) => {
  const { freezeClock, pool, rows } = await openStorage(t)
  await freezeClock(start)
  await enqueue(pool, { queue: 'q', payload: '2', partition: 'p' })
  await promoteDue(pool)
  t.equal((await rows('select from rouse.message_ids')).length, 1)
  const [{ count }] = (await rows<{ count: string }>(
    `with deleted as (delete from rouse.messages returning id)
     select rouse.forget_ids(array_agg(id)) as count from deleted`,
  )) as [{ count: string }]
  t.equal(count, '1')
  t.same(await rows('select from rouse.message_ids'), [])
})
