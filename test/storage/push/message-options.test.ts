// Options of single messages on their way into the log: of plain pushes, of delayed ones, of transactions.
import { promoteDue, push, transaction } from '@rouse/storage'
import { test } from 'tap'
import { message, openStorage, type Storage, start } from '../support/storage.ts'

const options = { retryLimit: 2, retryBackoffMs: [10, 20], ttlMs: 5_000 }

function stored({ rows }: Pick<Storage, 'rows'>) {
  return rows<Record<string, unknown>>(
    `select o.seq::int, o.retry_limit as "retryLimit", o.retry_backoff_ms::int[] as "retryBackoffMs",
       extract(epoch from o.expires_at)::float8 * 1000 - $1 as "expiresIn", m.payload
     from rouse.message_options o join rouse.messages m using (partition_id, seq) order by o.partition_id, o.seq`,
    [start],
  )
}

test('options are stored beside the messages that have some', async (t) => {
  const storage = await openStorage(t)
  const { freezeClock, pool, rows } = storage
  await freezeClock(start)
  await push(pool, [
    message('q', 'p', 'a'),
    message('q', 'p', 'b', { options }),
    message('q', 'other', 'c', { options: { retryLimit: 0 } }),
    message('q', 'plain', 'd'),
  ])
  t.same(await stored(storage), [
    { seq: 1, retryLimit: 0, retryBackoffMs: null, expiresIn: null, payload: '"c"' },
    { seq: 2, retryLimit: 2, retryBackoffMs: [10, 20], expiresIn: 5_000, payload: '"b"' },
  ])
  t.same(await rows('select name, options_until::int as until from rouse.partitions order by id'), [
    { name: 'other', until: 2 },
    { name: 'p', until: 3 },
    { name: 'plain', until: 0 },
  ])
})

test('a duplicate stores no options', async (t) => {
  const storage = await openStorage(t)
  const { freezeClock, pool } = storage
  await freezeClock(start)
  const keyed = { transactionId: 'key', options: { retryLimit: 1 } }
  await push(pool, [message('q', 'p', 'first', keyed), message('q', 'p', 'again', keyed)])
  await push(pool, [message('q', 'p', 'third', keyed), message('q', 'p', 'plain')])
  t.match(await stored(storage), [{ seq: 1, payload: '"first"' }])
})

test('a delayed message keeps its options, and its ttlMs counts from when it is due', async (t) => {
  const storage = await openStorage(t)
  const { advanceClock, freezeClock, pool } = storage
  await freezeClock(start)
  await push(pool, [
    message('q', 'p', 'plain', { delayMs: 1_000 }),
    message('q', 'p', 'late', { delayMs: 1_000, options }),
  ])
  t.same(await stored(storage), [])
  await advanceClock(3_000)
  await promoteDue(pool)
  t.same(await stored(storage), [
    { seq: 2, retryLimit: 2, retryBackoffMs: [10, 20], expiresIn: 6_000, payload: '"late"' },
  ])
})

test('a transaction stores options', async (t) => {
  const storage = await openStorage(t)
  const { freezeClock, pool } = storage
  await freezeClock(start)
  const pushes = [message('q', undefined, 'a', { options }), message('q', 'Default', 'b')]
  await transaction(pool, { acks: [], pushes })
  t.match(await stored(storage), [{ seq: 1, retryLimit: 2, payload: '"a"' }])
})

test('options follow their message when two targets are one partition', async (t) => {
  const storage = await openStorage(t)
  const { freezeClock, pool, set } = storage
  await freezeClock(start)
  await set('q', { ordering: 'none' })
  await push(pool, [
    message('q', 'Default', 'a'),
    message('q', undefined, 'b', { options: { retryLimit: 7 } }),
    message('q', 'Default', 'c', { options: { retryLimit: 8 } }),
  ])
  const found = await stored(storage)
  t.same(
    new Map(found.map(({ payload, retryLimit }) => [payload, retryLimit])),
    new Map([
      ['"b"', 7],
      ['"c"', 8],
    ]),
  )
})

test('a priority chooses a reserved partition, of which nine are created, the highest first', async (t) => {
  const { freezeClock, pool, rows } = await openStorage(t)
  await freezeClock(start)
  const pushed = await push(pool, [
    message('q', undefined, 'none'),
    message('q', undefined, 'zero', { priority: 0 }),
    message('q', undefined, 'five', { priority: 5 }),
  ])
  t.same(new Set(pushed.items.map(({ partition }) => partition)), new Set([null]))
  t.same(
    await rows(`select substr(name, 2) as level, head::int from rouse.partitions
      where rouse.is_level(name) order by id`),
    [9, 8, 7, 6, 5, 4, 3, 2, 1].map((level) => ({ level: `${level}`, head: level === 5 ? 2 : 1 })),
  )
  t.same(await rows('select prioritized, plain from rouse.queues'), [
    { prioritized: true, plain: false },
  ])
})
