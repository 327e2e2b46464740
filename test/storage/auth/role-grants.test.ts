// Database roles: what role_grants allows in users' SQL, and what the role of nodes may not do.
import { randomBytes, randomUUID } from 'node:crypto'
import { ackIn, enqueue, enqueueMany, promoteDue } from '@rouse/storage'
import type pg from 'pg'
import { type Test, test } from 'tap'
import { openStorage, payloads } from '../support/storage.ts'

/** A connection whose session user is a new producer with these grants. */
async function producer(t: Test, storage: Awaited<ReturnType<typeof openStorage>>) {
  const { rows, pool } = storage
  const name = `rouse_test_${randomBytes(6).toString('hex')}`
  await rows(`create role ${name} in role rouse_producer`)
  t.teardown(() => rows(`drop role ${name}`))
  return {
    name,
    allow: (...grants: string[]) =>
      rows('insert into rouse.role_grants (role, "grant") select $1, unnest($2::text[])', [
        name,
        grants,
      ]),
    /** In a transaction of its own. */
    as: async <Result>(work: (client: pg.ClientBase) => Promise<Result>): Promise<Result> => {
      const client = await pool.connect()
      try {
        await client.query(`begin; set local session authorization ${name}`)
        return await work(client)
      } finally {
        await client.query('commit')
        client.release()
      }
    },
  }
}

test('a producer without rows may use every queue, and one with rows only what they say', async (t) => {
  const storage = await openStorage(t)
  const { as, allow } = await producer(t, storage)
  const push = (queue: string) => as((client) => enqueue(client, { queue, payload: '1' }))
  const pushMany = (...queues: string[]) =>
    as((client) =>
      enqueueMany(
        client,
        queues.map((queue) => ({ queue, payload: 1 })),
      ),
    )
  await push('anything')
  await allow('push:orders', 'push:mail-*', 'push:a*b', 'pop:popped', 'manage:managed')
  for (const queue of ['orders', 'mail-', 'mail-eu', 'a*b', 'mail-/../x', 'mail-ü']) {
    await push(queue)
    await pushMany(queue, queue)
  }
  for (const queue of [
    'anything',
    'Orders',
    'orders2',
    'order',
    'mail',
    'xmail-eu',
    'axb',
    'popped',
    'managed',
    '*',
    'orders ',
    'mail_eu',
    '%',
    'o%',
  ]) {
    const refused = { code: '42501', detail: `{"code": "forbidden", "grant": "push:${queue}"}` }
    await t.rejects(push(queue), refused, queue)
    await t.rejects(pushMany('orders', queue), refused, queue)
  }
  const stored = await storage.rows<{ queue: string }>(
    'select distinct queue from rouse.scheduled order by 1',
  )
  t.same(
    stored.map(({ queue }) => queue),
    ['a*b', 'anything', 'mail-', 'mail-/../x', 'mail-eu', 'mail-ü', 'orders'],
    'nothing of a refused call is stored',
  )
})

test('ack_in needs the grant for the queue and the group of the lease', async (t) => {
  const storage = await openStorage(t)
  const { send, lease, pool, take, rows } = storage
  const { as, allow, name } = await producer(t, storage)
  const ack = (leaseId: string) => as((client) => ackIn(client, leaseId))
  await send('orders', 'p', [1, 2, 3])
  const first = await lease('orders')
  await allow('push:*')
  await t.rejects(ack(first.leaseId), { code: '42501', message: /lacks the grant pop$/ })
  await allow('pop:orders@other', 'pop:mail')
  await t.rejects(ack(first.leaseId), { code: '42501' }, 'another group')
  await allow('pop:order*@g')
  t.equal(await ack(first.leaseId), 1)
  await promoteDue(pool)
  const second = await lease('orders')
  t.same(payloads(second), [2])
  await rows('delete from rouse.role_grants where role = $1', [name])
  await allow('pop:orders')
  t.equal(await ack(second.leaseId), 1)
  await promoteDue(pool)
  t.same(payloads(await take('orders')), [3])
})

test('cancel needs manage on the queue of the message, and shows nothing of other queues', async (t) => {
  const storage = await openStorage(t)
  const { as, allow } = await producer(t, storage)
  const later = (queue: string) =>
    as(async (client) => {
      const { rows } = await client.query<{ id: string }>(
        `select rouse.enqueue($1, '1', delay => '1 hour') as id`,
        [queue],
      )
      return String(rows[0]?.id)
    })
  const cancel = (id: string) =>
    as(async (client) => {
      const { rows } = await client.query<{ done: boolean }>('select rouse.cancel($1) as done', [
        id,
      ])
      return rows[0]?.done
    })
  const [first, second, third] = [await later('orders'), await later('orders'), await later('mail')]
  t.equal(await cancel(first), true, 'without rows it may do everything')
  await allow('push:*', 'pop:*')
  const logged = await enqueue(storage.pool, { queue: 'mail', payload: '1' })
  await promoteDue(storage.pool)
  await t.rejects(storage.rows('select rouse.cancel($1)', [logged]), { code: 'RS409' })
  const unknown = randomUUID()
  for (const id of [second, third, logged, unknown]) {
    const detail = '{"code": "forbidden", "grant": "manage"}'
    await t.rejects(cancel(id), { code: '42501', message: /lacks the grant manage$/, detail })
  }
  await allow('manage:order*')
  t.equal(await cancel(second), true)
  for (const id of [third, logged, unknown]) t.equal(await cancel(id), false)
  const left = await storage.rows<{ queue: string }>('select queue from rouse.scheduled')
  t.same(
    left.map(({ queue }) => queue),
    ['mail'],
  )
})

test('the role that a session assumes does not count, and a grant must have a form', async (t) => {
  const storage = await openStorage(t)
  const { as, allow } = await producer(t, storage)
  await allow('push:orders')
  await as(async (client) => {
    await client.query('set local role rouse_producer')
    await client.query('savepoint s')
    await t.rejects(enqueue(client, { queue: 'mail', payload: '1' }), { code: '42501' })
    await client.query('rollback to s')
    await enqueue(client, { queue: 'orders', payload: '1' })
    await client.query('savepoint s')
    for (const statement of [
      'delete from rouse.role_grants',
      'select from rouse.role_grants',
      `select rouse.schedule_message('mail', '1', null, null, null, null, null, null, 0, null)`,
      'select rouse.grant_roles()',
    ]) {
      await t.rejects(client.query(statement), { code: '42501' }, statement)
      await client.query('rollback to s')
    }
  })
  for (const grant of ['admin', 'push', 'push:', 'peek:x', 'PUSH:x', '']) {
    await t.rejects(allow(grant), { code: '23514' }, grant)
  }
})

test('a node can use rows, but not change the schema, its secret, grants of roles, or the audit log', async (t) => {
  const { rows, begin } = await openStorage(t)
  const client = await begin()
  await client.query('set local role rouse_node; savepoint s')
  for (const statement of [
    'delete from rouse.audit',
    'update rouse.audit set target = $$x$$',
    'truncate rouse.audit',
    'truncate rouse.messages',
    'drop table rouse.messages',
    'alter table rouse.messages add column x int',
    'alter table rouse.scheduled disable trigger all',
    'create table rouse.x (a int)',
    'create or replace function rouse.now() returns timestamptz language sql as $$select now()$$',
    'drop function rouse.now()',
    `insert into rouse.role_grants values ('x', 'push:*')`,
    'delete from rouse.role_grants',
    'update rouse.node_secret set secret = $$x$$',
    'delete from rouse.migrations',
    `insert into rouse.function_sets (version, checksum) values (999, 'x')`,
    'grant select on rouse.messages to public',
  ]) {
    const done = client.query(statement).then(
      () => 'done',
      (error: { code: string }) => error.code,
    )
    // Without the right to grant, PostgreSQL only warns.
    t.equal(await done, statement.startsWith('grant') ? 'done' : '42501', statement)
    await client.query('rollback to s')
  }
  await client.query('rollback')
  const [row] = await rows<{ granted: boolean }>(
    `select has_table_privilege('public', 'rouse.messages', 'select') as granted`,
  )
  t.equal(row?.granted, false)
  const missing = await rows<{ name: string }>(
    `select p.oid::regprocedure::text as name from pg_proc p
     where p.pronamespace = 'rouse'::regnamespace and not has_function_privilege('rouse_node', p.oid, 'execute')`,
  )
  t.same(missing, [], 'a node may call every function')
})

test('functions that run as the owner pin their search path', async (t) => {
  const { rows } = await openStorage(t)
  const open = await rows<{ name: string }>(
    `select p.oid::regprocedure::text as name from pg_proc p
     where p.pronamespace = 'rouse'::regnamespace and p.prosecdef
       and not coalesce(p.proconfig, '{}') @> array['search_path=pg_catalog, pg_temp']`,
  )
  t.same(open, [])
})

test('rouse.cancel needs the grant to manage the queue of the message', async (t) => {
  const storage = await openStorage(t)
  const { as, allow } = await producer(t, storage)
  const scheduled = (queue: string) =>
    enqueue(storage.pool, { queue, payload: '1', delayMs: 60_000 })
  const cancel = (id: string) =>
    as(async (client) => (await client.query('select rouse.cancel($1) as done', [id])).rows[0].done)
  t.equal(await cancel(await scheduled('anything')), true, 'without rows every queue is allowed')
  await allow('push:*', 'pop:*', 'manage:mine-*')
  const id = await scheduled('orders')
  t.equal(await cancel(id), false, 'as if there was no such message')
  const { rowCount } = await storage.pool.query(
    'select from rouse.scheduled where message_id = $1',
    [id],
  )
  t.equal(rowCount, 1, 'it is still scheduled')
  const mine = await scheduled('mine-eu')
  t.equal(await cancel(mine), true)
  t.equal(await cancel(mine), false, 'it was cancelled before')
})
