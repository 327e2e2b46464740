// Rules 10 and 18 of docs/storage.md: a user's transaction that has called enqueue or ack_in may stay open
// without blocking other calls.
import {
  ack,
  ackIn,
  configure,
  deleteQueue,
  enqueue,
  enqueueMany,
  type Lease,
  messageById,
  promoteDue,
  purge,
  push,
  reapExpired,
  release,
  renew,
} from '@rouse/storage'
import type pg from 'pg'
import { test } from 'tap'
import { newId } from '../support/new-id.ts'
import {
  item,
  message,
  openStorage,
  payloads,
  refusal,
  type Storage,
  start,
} from '../support/storage.ts'
import { dumpTables } from '../support/table-dump.ts'

test('an open enqueue blocks neither pushes nor pops nor promotion of its partition', async (t) => {
  const { begin, pool, send, take } = await openStorage(t)
  await send('q', 'p', ['before'])
  const client = await begin()
  await enqueue(client, { queue: 'q', partition: 'p', payload: '"enqueued"' })
  await send('q', 'p', ['after'])
  await push(pool, [message('q', 'p', 'keyed', { transactionId: 'k' })])
  await promoteDue(pool)
  t.same(payloads(await take('q', { batch: 9, autoAck: true })), ['before', 'after', 'keyed'])
  await client.query('commit')
  t.match(await promoteDue(pool), [{ queue: 'q', partition: 'p', group: null, count: 1 }])
  t.same(payloads(await take('q', { batch: 9 })), ['enqueued'])
})

test('a message enqueued and rolled back is never delivered', async (t) => {
  const { begin, pool, rows, send } = await openStorage(t)
  await send('q', 'p', ['before'])
  const client = await begin()
  await enqueue(client, { queue: 'q', partition: 'p', payload: '1' })
  await client.query('rollback')
  t.same(await promoteDue(pool), [])
  t.same(await rows('select from rouse.scheduled'), [])
})

test('an enqueue in the middle of a repeatable read sees its own snapshot and still commits', async (t) => {
  const { begin, pool, send, take } = await openStorage(t)
  await send('q', 'p', [1])
  const client = await begin('repeatable read')
  await client.query('select count(*) from rouse.messages')
  await send('q', 'p', [2])
  await enqueue(client, { queue: 'q', partition: 'p', payload: '3' })
  await client.query('commit')
  await promoteDue(pool)
  t.same(payloads(await take('q', { batch: 9 })), [1, 2, 3])
})

/** Leaves a transaction open after ack_in of a lease on the first of two messages. */
async function openAckIn(storage: Storage, ordering = 'partition', mode?: string) {
  await storage.freezeClock(start)
  await storage.set('q', { ordering })
  await storage.send('q', 'p', [1, 2])
  const held = await storage.lease('q', { leaseMs: 1_000 })
  const client = await storage.begin(mode)
  if (mode !== undefined) await client.query('select count(*) from rouse.leases')
  await ackIn(client, held.leaseId)
  return { held, client }
}

test('an open ack_in does not block pushes to its lane', async (t) => {
  const storage = await openStorage(t)
  const { client } = await openAckIn(storage)
  await storage.send('q', 'p', [3])
  await push(storage.pool, [message('q', 'p', 4), message('q', 'other', 1)])
  await promoteDue(storage.pool)
  await client.query('commit')
  await promoteDue(storage.pool)
  t.same(payloads(await storage.take('q', { partition: 'p', batch: 9 })), [2, 3, 4])
})

test('with ordering none an open ack_in does not block pops of its lane', async (t) => {
  const storage = await openStorage(t)
  await openAckIn(storage, 'none')
  t.same(payloads(await storage.take('q', { batch: 9 })), [2])
})

test('an ordered lane stays leased under an open ack_in, and opens after its commit', async (t) => {
  const storage = await openStorage(t)
  const { client } = await openAckIn(storage)
  t.match(await storage.take('q'), { status: 'empty' })
  await client.query('commit')
  t.match(await storage.take('q'), { status: 'empty' }, 'only the promoter opens it')
  t.match(await promoteDue(storage.pool), [{ queue: 'q', partition: 'p', group: 'g', count: 1 }])
  t.same(payloads(await storage.take('q')), [2])
  t.same(await storage.rows('select from rouse.freed'), [])
})

for (const ordering of ['partition', 'none']) {
  test(`with ordering ${ordering} a lease cannot expire, end or be extended during an open ack_in`, async (t) => {
    const storage = await openStorage(t)
    const { advanceClock, pool, rows, take } = storage
    const { client, held } = await openAckIn(storage, ordering)
    t.same((await ack(pool, [item(held)])).rejected, [0])
    t.same((await ack(pool, [item(held, 0, 'failed')])).rejected, [0])
    t.equal((await release(pool, [held.leaseId])).released.size, 0)
    t.same(await renew(pool, [{ leaseId: held.leaseId, durationMs: 99_000 }]), [
      { expiresAtMs: start + 1_000, leftMs: 1_000 },
    ])
    await advanceClock(60_000)
    t.same(await reapExpired(pool), [])
    await client.query('commit')
    await reapExpired(pool)
    await promoteDue(pool)
    t.same(payloads(await take('q', { batch: 9 })), [2], 'the first was completed, not redelivered')
    t.same(await rows('select from rouse.attempts'), [])
  })

  test(`with ordering ${ordering} an ack_in that is rolled back changes nothing`, async (t) => {
    const storage = await openStorage(t)
    const { freezeClock, lease, pool, send, set } = storage
    await freezeClock(start)
    await set('q', { ordering })
    await send('q', 'p', [1, 2])
    const held = await lease('q', { batch: 2 })
    const before = await dumpTables(pool)
    const client = await storage.begin()
    t.equal(await ackIn(client, held.leaseId, { partitionId: held.partitionId, seq: 1 }), 1)
    t.equal(await ackIn(client, held.leaseId), 1)
    await client.query('rollback')
    t.same(await dumpTables(pool), before)
    t.same((await ack(pool, [item(held), item(held, 1)])).rejected, [])
  })
}

test('ack_in of a lease that holds several messages is refused, and of the last one is not', async (t) => {
  const { begin, freezeClock, lease, pool, send } = await openStorage(t)
  await freezeClock(start)
  await send('q', 'p', [1, 2])
  const { leaseId, partitionId } = await lease('q', { batch: 2 })
  const before = await dumpTables(pool)
  const client = await begin()
  await t.rejects(ackIn(client, leaseId), { code: 'RS409', message: /pass the receipt/ })
  await client.query('rollback')
  t.same(await dumpTables(pool), before, 'nothing changed')
  await ackIn(pool, leaseId, { partitionId, seq: 2 })
  t.equal(await ackIn(pool, leaseId), 1)
})

test('ack_in of one message leaves the rest of the lease with its holder', async (t) => {
  const { begin, lease, pool, send } = await openStorage(t)
  await send('q', 'p', [1, 2, 3])
  const held: Lease = await lease('q', { batch: 3 })
  const client = await begin()
  t.equal(await ackIn(client, held.leaseId, { partitionId: held.partitionId, seq: 2 }), 1)
  await client.query('commit')
  t.same(
    (
      await ack(
        pool,
        [0, 1, 2].map((at) => item(held, at)),
      )
    ).rejected,
    [1],
  )
})

test('ack_in works under repeatable read', async (t) => {
  const storage = await openStorage(t)
  const { client } = await openAckIn(storage, 'partition', 'repeatable read')
  await storage.send('q', 'p', [3])
  await client.query('commit')
  await promoteDue(storage.pool)
  t.same(payloads(await storage.take('q', { batch: 9 })), [2, 3])
})

test('a lane freed by ack_in after a seek of its group stays with its new holder', async (t) => {
  const storage = await openStorage(t)
  const { lane, lease, pool, rows, send } = storage
  await send('q', 'p', [1, 2, 3])
  const first = await lease('q')
  await ackIn(pool, first.leaseId)
  await rows('update rouse.lanes set lease_id = null')
  const second = await lease('q')
  await promoteDue(pool)
  t.equal((await lane()).lease_id, second.leaseId)
})

test('a group whose in-flight limit was reached is woken when ack_in commits', async (t) => {
  const { lease, pool, send, set, take } = await openStorage(t)
  await set('q', { ordering: 'none', maxInFlight: 1 })
  await send('q', 'p', [1, 2])
  const held = await lease('q')
  t.equal((await take('q')).status, 'empty')
  await ackIn(pool, held.leaseId)
  t.match(await promoteDue(pool), [{ queue: 'q', group: 'g' }])
  t.same(payloads(await take('q')), [2])
})

// Rule 18.

test('a producer may call enqueue, enqueue_many, cancel and ack_in, and access nothing else', async (t) => {
  const { begin, lease, pool, rows, send, take } = await openStorage(t)
  await send('q', 'p', [1])
  const { leaseId } = await lease('q')
  const client = await begin()
  await client.query('set local role rouse_producer')
  await enqueue(client, { queue: 'q', partition: 'p', payload: '2', transactionId: 'k' })
  await enqueueMany(client, [{ queue: 'q', partition: 'p', payload: 3 }])
  t.equal(await ackIn(client, leaseId), 1)
  await client.query('commit')
  await promoteDue(pool)
  t.same(payloads(await take('q', { batch: 9 })), [2, 3])

  const functions = await rows<{ call: string; allowed: boolean }>(
    `select p.oid::regprocedure::text as call, has_function_privilege('rouse_producer', p.oid, 'execute') as allowed
     from pg_proc p where p.pronamespace = 'rouse'::regnamespace`,
  )
  const allowed = functions.filter((f) => f.allowed).map(({ call }) => call.replace(/\(.*/, ''))
  const expected = ['rouse.ack_in', 'rouse.cancel', 'rouse.enqueue', 'rouse.enqueue_many']
  t.same([...new Set(allowed)].toSorted(), expected)
  const relations = await rows<{ name: string; allowed: boolean }>(
    `select c.relname as name, bool_or(has_table_privilege('rouse_producer', c.oid, p)) as allowed
     from pg_class c, unnest(array['select', 'insert', 'update', 'delete', 'truncate']) p
     where c.relnamespace = 'rouse'::regnamespace and c.relkind = 'r' group by 1`,
  )
  t.same(
    relations.filter((r) => r.allowed),
    [],
  )
})

test('the search path of a producer does not affect the functions', async (t) => {
  const { begin, rows } = await openStorage(t)
  await rows(`create schema evil; grant usage, create on schema evil to rouse_producer;
    create function evil.octet_length(text) returns integer language sql as 'select 1/0';
    grant execute on all functions in schema evil to rouse_producer`)
  const client = await begin()
  await client.query(
    `set local role rouse_producer; set local search_path = evil, pg_catalog, rouse`,
  )
  await enqueue(client, { queue: 'q', payload: '1' })
  await client.query('commit')
  t.equal((await rows('select from rouse.scheduled')).length, 1)
})

for (const [what, values] of [
  ['an empty queue name', ['', '1']],
  ['a control character in the partition', ['q', '1', 'a\u0007']],
  ['no payload', ['q', null]],
  ['a negative delay', ['q', '1', 'p', '-1 second']],
  ['headers that are no object', ['q', '1', 'p', null, null, null, '[]']],
  ['a payload beyond a MiB', ['q', JSON.stringify('x'.repeat(1_100_000))]],
] as const) {
  test(`an enqueue with ${what} is refused by name`, async (t) => {
    const { rows } = await openStorage(t)
    const padded = [...values, ...Array.from({ length: 8 - values.length }, () => null)]
    padded[2] ??= 'Default'
    const call = rows('select rouse.enqueue($1, $2, $3, $4, $5, $6, $7, $8)', padded)
    const { detail, state } = await refusal(call)
    t.equal(state, 'RS400')
    t.type(detail.field, 'string')
    t.same(await rows('select from rouse.scheduled'), [])
  })
}

test('rows of SQL producers notify when they commit; those of the broker never do', async (t) => {
  const { begin, pool, rows } = await openStorage(t)
  const listener = await pool.connect()
  t.teardown(() => listener.release(true))
  const heard: string[] = []
  listener.on('notification', ({ payload }) => heard.push(payload ?? ''))
  await listener.query('listen rouse_scheduled')
  await push(pool, [message('q', 'p', 1, { delayMs: 60_000 })])
  const client = await begin()
  await enqueue(client, { queue: 'q', payload: '1' })
  await enqueue(client, { queue: 'q', payload: '2' })
  await client.query('commit')
  await enqueue(pool, { queue: 'q', payload: '3', runAt: new Date(start) })
  await listener.query('select 1')
  t.same(heard, ['0', String(start)])
  t.equal((await rows('select from rouse.scheduled')).length, 4)
})

test('cancel in a transaction takes effect with its commit, and holds up no one else', async (t) => {
  const { advanceClock, begin, freezeClock, pool, rows, take } = await openStorage(t)
  await freezeClock(start)
  const ids = await rows<{ id: string }>(
    `select rouse.enqueue('q', to_jsonb(n), partition => 'p', delay => '1 second') as id from generate_series(1, 3) n`,
  )
  const [kept, gone] = ids.map(({ id }) => id)
  const [undone, done] = [await begin(), await begin()]
  const cancelled = (client: pg.PoolClient, id: string | undefined) =>
    client.query<{ cancel: boolean }>('select rouse.cancel($1)', [id])
  t.same((await cancelled(undone, kept)).rows, [{ cancel: true }])
  await done.query('set local role rouse_producer')
  t.same((await cancelled(done, gone)).rows, [{ cancel: true }])
  t.same(
    (await cancelled(done, gone)).rows,
    [{ cancel: false }],
    'a second time it is not scheduled',
  )
  await advanceClock(1_000)
  await promoteDue(pool)
  t.same(
    payloads(await take('q', { batch: 9, autoAck: true })),
    [3],
    'the others are not waited for',
  )
  t.match(await refusal(rows('select rouse.cancel($1)', [kept])), {
    state: 'RS409',
    detail: { code: 'not_scheduled' },
  })
  await undone.query('rollback')
  await done.query('commit')
  await promoteDue(pool)
  t.same(payloads(await take('q', { batch: 9, autoAck: true })), [1])
  t.match(await messageById(pool, gone as string), { cancelledAt: new Date(start) })
})

test('cancel refuses what is not scheduled, and names the route', async (t) => {
  const { freezeClock, pool, rows } = await openStorage(t)
  await freezeClock(start)
  const pushed = await push(pool, [
    message('q', 'p', 1, { id: newId() }),
    message('q', 'p', 2, { id: newId(), delayMs: 1_000, transactionId: 'k' }),
    message('q', 'p', 3, { id: newId(), delayMs: 1_000 }),
  ])
  const [logged, ...scheduled] = pushed.items.map(({ messageId }) => messageId)
  await t.rejects(rows('select rouse.cancel($1)', [logged]), {
    code: 'RS409',
    message: new RegExp(`DELETE /api/v1/messages/${logged}`),
  })
  for (const id of scheduled) {
    t.same(await rows('select rouse.cancel($1)', [id]), [{ cancel: true }])
  }
  t.same(await rows('select rouse.cancel($1)', [newId()]), [{ cancel: false }])
  t.same(await rows('select rouse.cancel(gen_random_uuid())'), [{ cancel: false }])
})

test('a purge and a deletion do not wait for an open cancel', async (t) => {
  const { begin, pool, rows } = await openStorage(t)
  for (const remove of [purge, deleteQueue]) {
    await rows(`select rouse.enqueue('q', '1', delay => '1 hour')`)
    const [row] = await rows<{ id: string }>(
      `select rouse.enqueue('q', '2', delay => '1 hour') as id`,
    )
    await configure(pool, { queue: 'q', options: {} })
    const client = await begin()
    await client.query('select rouse.cancel($1)', [row?.id])
    await remove(pool, 'q')
    t.equal((await rows('select from rouse.scheduled')).length, 1)
    await client.query('commit')
    t.same(await rows('select from rouse.scheduled'), [])
  }
})
