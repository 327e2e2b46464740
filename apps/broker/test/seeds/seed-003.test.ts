// The verification list of seed document 003 (see ARCHITECTURE.md), job dispatch: an outbox in the user's
// transaction, leases, retry delays. Each title ends with the number of its item.
import { eventually, testDatabase } from '@rouse/testkit'
import { test } from 'tap'
import { startBroker } from '../support/broker.ts'
import { apiOf } from '../support/http.ts'
import { stateOf, untilWaiting, wakesDuring } from '../support/node-state.ts'
import { sharedBroker, unique } from '../support/shared-broker.ts'
import { sqlUser } from '../support/sql-user.ts'

const node = await sharedBroker()
const api = apiOf(node.url)
const { pool } = node.database

test("a job enqueued in the user's transaction is announced by NOTIFY, handled and completed (003-1)", async (t) => {
  const queue = unique()
  const user = await sqlUser(t, node.database.url)
  await user.query('create table if not exists items (id int primary key, state text)')
  const waiting = api.pop(queue, '?wait=true&timeout=20000')
  await untilWaiting(node, queue, 1)
  const wakes = await wakesDuring(node, async () => {
    await user.query('begin')
    await user.query(`insert into items values (1, 'new')`)
    await user.query(`select rouse.enqueue($1, '{"item": 1}')`, [queue])
    await user.query('commit')
    const { body } = await waiting
    t.same(body.messages[0].data, { item: 1 })
    t.equal((await api.ack(body.messages[0])).status, 200)
  })
  t.equal(wakes.notify, 1)
  t.equal((await api.pop(queue)).status, 204, 'completed')
})

test('a job without a NOTIFY is found by polling (003-2)', async (t) => {
  const queue = unique()
  const waiting = api.pop(queue, '?wait=true&timeout=20000')
  await untilWaiting(node, queue, 1)
  const wakes = await wakesDuring(node, async () => {
    // A row whose origin is the broker sends no NOTIFY, and no worker sent a hint for this row.
    await pool.query(
      `insert into rouse.scheduled (queue, partition, due_at, message_id, payload, origin, created_at)
       values ($1, 'p', now(), gen_random_uuid(), '1', 'broker', now())`,
      [queue],
    )
    t.equal((await waiting).status, 200)
  })
  t.match(wakes, { notify: 0, timer: 1 })
})

test('concurrent workers handle no job twice (003-3)', async (t) => {
  const queue = unique()
  await pool.query(
    `select rouse.enqueue($1, to_json(n), partition => 'p' || n) from generate_series(1, 200) n`,
    [queue],
  )
  const handled: number[] = []
  await Promise.all(
    Array.from({ length: 8 }, async () => {
      for (;;) {
        const { status, body } = await api.pop(
          queue,
          '?batch=5&partitions=5&autoAck=true&wait=true&timeout=1500',
        )
        if (status === 204) return
        for (const { data } of body.messages) handled.push(data)
      }
    }),
  )
  t.equal(handled.length, 200)
  t.equal(new Set(handled).size, 200)
})

test('a job whose worker died is redelivered when its lease expires (003-4)', async (t) => {
  const queue = unique()
  await api.push({ queue, payload: 'job' })
  const begun = performance.now()
  t.equal((await api.pop(queue, '?leaseSeconds=1')).status, 200) // and the worker dies
  const { body } = await api.pop(queue, '?wait=true&timeout=10000')
  t.match(body.messages, [{ data: 'job', attempt: 2 }])
  t.ok(performance.now() - begun >= 1_000, 'not before')
})

test('a job that is handled twice has its effect once (003-5)', async (t) => {
  const queue = unique()
  const user = await sqlUser(t, node.database.url)
  await user.query('create table if not exists effects (job text)')
  await api.push({ queue, payload: 'job' })
  await api.pop(queue, '?leaseSeconds=1')
  const { rows } = await pool.query(
    `select s.id from rouse.leases s join rouse.groups g on g.id = s.group_id
     join rouse.queues q on q.id = g.queue_id where q.name = $1`,
    [queue],
  )
  const again = await api.pop(queue, '?wait=true&timeout=10000')
  t.equal(again.body.messages[0].attempt, 2)
  // The first worker is late: its ack_in is refused, which rolls back its effect.
  await user.query('begin')
  await user.query(`insert into effects values ('by the first')`)
  await t.rejects(user.query('select rouse.ack_in($1)', [rows[0].id]))
  await user.query('rollback')
  const second = await pool.query(
    `select s.id from rouse.leases s join rouse.groups g on g.id = s.group_id
     join rouse.queues q on q.id = g.queue_id where q.name = $1`,
    [queue],
  )
  await user.query('begin')
  await user.query(`insert into effects values ('by the second')`)
  await user.query('select rouse.ack_in($1)', [second.rows[0].id])
  await user.query('commit')
  const effects = await user.query('select job from effects')
  t.same(effects.rows, [{ job: 'by the second' }])
})

test('a job enqueued twice with the same key is stored once (003)', async (t) => {
  const queue = unique()
  for (const n of [1, 2]) {
    await pool.query(`select rouse.enqueue($1, $2, transaction_id => 'item-1')`, [queue, `${n}`])
  }
  const { body } = await api.pop(queue, '?wait=true&timeout=5000&autoAck=true')
  t.equal(body.messages[0].data, 1)
  t.equal((await api.pop(queue, '?wait=true&timeout=1500')).status, 204)
})

test('a job is retried at once, after 30 seconds and after 5 minutes, then dead-lettered (003)', async (t) => {
  const database = await testDatabase(t)
  await database.freezeClock('2030-01-01T00:00:00Z')
  const own = await startBroker(t, { database })
  const client = apiOf(own.url)
  await client.push({ queue: 'q', payload: 1 })
  for (const [attempt, waitMs] of [
    [1, 0],
    [2, 0],
    [3, 30_000],
    [4, 300_000],
  ] as const) {
    if (waitMs > 0) {
      await database.advanceClock(waitMs - 1)
      const looks = (await stateOf(own)).time.looks
      await eventually(async () => (await stateOf(own)).time.looks > looks + 1)
      t.equal((await client.pop('q')).status, 204, `not before ${waitMs} ms`)
      await database.advanceClock(1)
    }
    const { body } = await client.pop('q', '?wait=true&timeout=10000')
    t.equal(body.messages[0].attempt, attempt)
    await client.ack(body.messages[0], 'failed', { errorCode: 'E1', error: 'no' })
  }
  const { rows } = await database.pool.query('select attempts, error_code from rouse.dead_letters')
  t.same(rows, [{ attempts: 4, error_code: 'E1' }])
})

test('a job that kills its worker is dead-lettered after four deliveries, and its lane continues (003)', async (t) => {
  const database = await testDatabase(t)
  await database.freezeClock('2030-01-01T00:00:00Z')
  const own = await startBroker(t, { database })
  const client = apiOf(own.url)
  const place = { queue: 'q', partition: 'p' }
  await client.push({ ...place, payload: 'poison' }, { ...place, payload: 'good' })
  for (let delivery = 1; delivery <= 4; delivery += 1) {
    const { body } = await client.pop('q', '?wait=true&timeout=10000&leaseSeconds=1')
    t.match(body.messages, [{ data: 'poison', attempt: delivery }])
    await database.advanceClock(1_000)
  }
  const { body } = await client.pop('q', '?wait=true&timeout=10000')
  t.match(body.messages, [{ data: 'good', attempt: 1 }])
})

test('a hundred jobs enqueued at once are handled within five seconds (003)', async (t) => {
  const queue = unique()
  const handled = new Set<number>()
  const workers = Array.from({ length: 4 }, async () => {
    while (handled.size < 100) {
      const { status, body } = await api.pop(queue, '?wait=true&timeout=2000&batch=5')
      if (status !== 200) continue
      for (const message of body.messages) {
        handled.add(message.data)
        await api.ack(message)
      }
    }
  })
  await untilWaiting(node, queue, 4)
  const begun = performance.now()
  await Promise.all(
    Array.from({ length: 100 }, (_, i) =>
      pool.query(`select rouse.enqueue($1, $2, partition => $3)`, [queue, `${i}`, `p${i % 10}`]),
    ),
  )
  await Promise.all(workers)
  t.ok(performance.now() - begun < 5_000, `${performance.now() - begun} ms`)
})
