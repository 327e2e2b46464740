// Rules 1, 2 and 4 of docs/storage.md: the log, its order, and what a push must never do.
import { randomUUID } from 'node:crypto'
import { deleteQueue, type NewMessage, push, retain } from '@rouse/storage'
import type pg from 'pg'
import { test } from 'tap'
import { finish, message, openStorage, payloads, refusal, start } from '../support/storage.ts'

test('a delivered and acknowledged message updates no row of its own', async (t) => {
  const { begin, lease, send } = await openStorage(t)
  await send('q', 'p', [0])
  await lease('q', { autoAck: true })
  const client = await begin()
  const before = await rowsWritten(client)
  await send(
    'q',
    'p',
    Array.from({ length: 50 }, (_, i) => i),
    client,
  )
  const held = await lease('q', { batch: 50, on: client })
  await finish(client, held)
  const after = await rowsWritten(client)
  const written = (table: string) => (after.get(table) ?? 0) - (before.get(table) ?? 0)
  t.equal(written('messages'), 50, 'each message is inserted, and that is all')
  t.equal(written('leases'), 2, 'one insert, one delete')
  t.equal(written('partitions'), 1)
  t.equal(written('redeliveries'), 0)
  t.ok(written('lanes') <= 3, 'a lane is written by push, pop and ack, however many messages')
})

async function rowsWritten(client: pg.PoolClient): Promise<Map<string, number>> {
  const { rows } = await client.query<{ name: string; written: number }>(
    `select relname as name, (n_tup_ins + n_tup_upd + n_tup_del)::int as written
     from pg_stat_xact_user_tables where schemaname = 'rouse'`,
  )
  return new Map(rows.map(({ name, written }) => [name, written]))
}

for (const barrier of ['push-head-moved', 'push-inserted', 'push-woken']) {
  test(`a push that commits late, stopped at ${barrier}, is not skipped`, async (t) => {
    const { armBarrier, send, take, waiting } = await openStorage(t)
    await send('q', 'p', ['first'])
    t.same(payloads(await take('q', { autoAck: true })), ['first'])
    const late = await armBarrier(barrier)
    const slow = send('q', 'p', ['slow'])
    await late.reached()
    const quick = send('q', 'p', ['quick'])
    await waiting()
    t.same(payloads(await take('q', { batch: 10, autoAck: true })), [], 'nothing is visible yet')
    await late.release()
    await Promise.all([slow, quick])
    t.same(payloads(await take('q', { batch: 10, autoAck: true })), ['slow', 'quick'])
  })
}

test('a push to many partitions that commits late is not skipped in any of them', async (t) => {
  const { armBarrier, pool, send, take, waiting } = await openStorage(t)
  const both = (text: string) => [message('q', 'a', `${text} a`), message('q', 'b', `${text} b`)]
  const all = { batch: 9, partitions: 2, autoAck: true }
  await push(pool, both('first'))
  await take('q', all)
  const late = await armBarrier('push-general-head-moved')
  const slow = push(pool, both('slow'))
  await late.reached()
  const quick = send('q', 'b', ['quick b'])
  await waiting()
  t.same(payloads(await take('q', all)), [])
  await late.release()
  await Promise.all([slow, quick])
  t.same(payloads(await take('q', { ...all, partition: 'b' })), ['slow b', 'quick b'])
  t.same(payloads(await take('q', { ...all, partition: 'a' })), ['slow a'])
})

test('a push to many partitions that waits for one of them continues at its new head', async (t) => {
  const { begin, pool, send, take, waiting } = await openStorage(t)
  const all = (text: string) => ['a', 'b', 'c'].map((name) => message('q', name, text))
  await push(pool, all('old'))
  const other = await begin()
  await send('q', 'b', ['other'], other)
  const late = push(pool, all('late'))
  await waiting()
  await other.query('commit')
  await late
  await push(pool, all('last'))
  for (const partition of ['a', 'b', 'c']) {
    const came = payloads(await take('q', { partition, batch: 9 }))
    t.same(came, ['old', ...(partition === 'b' ? ['other'] : []), 'late', 'last'])
  }
})

for (const [what, queues] of [
  ['of one queue', ['q', 'q', 'q']],
  ['of several queues', ['q', 'r', 's']],
] as const) {
  test(`a push that names partitions ${what} in another order than they were created stores each message in its own`, async (t) => {
    const { pool, send, take } = await openStorage(t)
    const places = queues.map((queue, i) => ({ queue, partition: `p${i}` }))
    for (const { queue, partition } of places) await send(queue, partition, ['old'])
    const items = places.map(({ queue, partition }) => message(queue, partition, partition))
    await push(pool, items.toReversed())
    await push(
      pool,
      [items[1], items[2], items[0]].map((m) => ({ ...(m as NewMessage), id: randomUUID() })),
    )
    for (const { queue, partition } of places) {
      const came = payloads(await take(queue, { partition, batch: 9 }))
      t.same(came, ['old', partition, partition])
    }
  })
}

test('the order of seqs is the order of creation, without a gap, for all writers', async (t) => {
  const { pool, rows, send } = await openStorage(t)
  await send('q', 'p', ['x'])
  const both = (i: number) => push(pool, [message('q', 'p', i), message('q', 'other', i)])
  await Promise.all(
    Array.from({ length: 40 }, (_, i) => (i % 2 === 0 ? send('q', 'p', [i]) : both(i))),
  )
  const found = await rows<{ seq: string; created_at: Date }>(
    `select m.seq, m.created_at from rouse.messages m
     join rouse.partitions p on p.id = m.partition_id where p.name = 'p' order by m.seq`,
  )
  t.same(
    found.map(({ seq }) => Number(seq)),
    Array.from({ length: 41 }, (_, i) => i + 1),
  )
  const times = found.map(({ created_at }) => created_at.getTime())
  t.same(
    times,
    times.toSorted((a, b) => a - b),
  )
})

test('creation times of a partition never decrease, even if the clock does', async (t) => {
  const { freezeClock, lease, pool, send } = await openStorage(t)
  await freezeClock(start + 5_000)
  await send('q', 'p', ['late clock'])
  await freezeClock(start)
  await send('q', 'p', ['early clock'])
  await push(pool, [message('q', 'p', 'keyed', { transactionId: 'k' })])
  const { messages } = await lease('q', { batch: 3 })
  t.same(
    messages.map(({ createdAtMs }) => createdAtMs),
    [start + 5_000, start + 5_000, start + 5_000],
  )
})

for (const [form, barrier, hasKey, delayMs] of [
  ['one partition', 'push-head-moved', false, undefined],
  ['one partition with a key', 'push-head-moved', true, undefined],
  ['its general form', 'push-general-head-moved', true, 0],
] as const) {
  test(`a push in ${form} reads the clock only after it has locked the partition`, async (t) => {
    const { armBarrier, freezeClock, pool, send, take, waiting } = await openStorage(t)
    await freezeClock(start)
    await send('q', 'p', ['old'])
    const holding = await armBarrier(barrier)
    const keyed = (text: string) =>
      message('q', 'p', text, { transactionId: hasKey ? text : undefined, delayMs })
    const first = push(pool, [keyed('holds the lock')])
    await holding.reached()
    const second = push(pool, [keyed('waits')])
    await waiting()
    await freezeClock(start + 10_000)
    await take('q', { group: 'new', subscription: 'new' })
    await freezeClock(start + 20_000)
    await holding.release()
    await Promise.all([first, second])
    const { leases } = await take('q', { group: 'new', batch: 9 })
    t.ok(payloads({ leases }).includes('waits'), 'it is newer than the subscription')
    t.equal(leases[0]?.messages.at(-1)?.createdAtMs, start + 20_000)
  })
}

for (const [form, items] of [
  ['one partition', () => [message('q', 'p', 'again')]],
  ['many partitions', () => [message('q', 'p', 'again'), message('q', 'p2', 'again')]],
  ['one partition with a key', () => [message('q', 'p', 'again', { transactionId: 'k' })]],
] as const) {
  test(`a push to ${form} of a queue deleted while it waits succeeds, at the latest when retried`, async (t) => {
    const { begin, pool, take, waiting } = await openStorage(t)
    await push(pool, [message('q', 'p', 'old'), message('q', 'p2', 'old')])
    const client = await begin()
    await remove(client, 'q')
    const waits = retried(() => push(pool, items()))
    await waiting()
    await client.query('commit')
    const { items: pushed } = await waits
    t.ok(pushed.every(({ status }) => status === 'queued'))
    t.same(payloads(await take('q', { partition: 'p', batch: 9 })), ['again'])
  })
}

test('a push that waits for partitions of which one is deleted must be retried as a whole', async (t) => {
  const { begin, pool, rows, send, waiting } = await openStorage(t)
  await send('q', 'stays', ['old'])
  await send('gone', 'p', ['old'])
  const client = await begin()
  await remove(client, 'gone')
  const waits = refusal(push(pool, [message('q', 'stays', 'new'), message('gone', 'p', 'new')]))
  await waiting()
  await client.query('commit')
  t.match(await waits, { state: 'RS001', detail: { code: 'retry' } })
  t.same(await rows('select payload from rouse.messages'), [{ payload: '"old"' }])
})

test('a push to an idle partition that retention removes while it waits succeeds', async (t) => {
  const { advanceClock, begin, freezeClock, send, take, waiting } = await openStorage(t)
  await freezeClock(start)
  await send('q', 'p', ['old'])
  await take('q', { autoAck: true })
  await advanceClock(30 * 86_400_000)
  const client = await begin()
  t.match(await retain(client), { messages: 1, partitions: 1 })
  const late = retried(() => send('q', 'p', ['late']))
  await waiting()
  await client.query('commit')
  await late
  t.same(payloads(await take('q')), ['late'])
})

/** Deletes a queue, and runs the step that removes its contents. */
async function remove(client: pg.PoolClient, queue: string): Promise<void> {
  await deleteQueue(client, queue)
  await client.query(`select from rouse.removal_step('test')`)
}

/** Repeats a call that fails with RS001, as the broker does: such a call has changed nothing. */
async function retried<Result>(call: () => Promise<Result>): Promise<Result> {
  try {
    return await call()
  } catch (error) {
    if ((error as { code?: string }).code !== 'RS001') throw error
    return call()
  }
}
