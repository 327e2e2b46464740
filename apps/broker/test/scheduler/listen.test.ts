// Calls of SQL producers and consumers take effect when their transaction commits, and block nothing before
// that.
import { test } from 'tap'
import { apiOf } from '../support/http.ts'
import { pass, stateOf, untilWaiting, wakesDuring } from '../support/node-state.ts'
import { sharedBroker, unique } from '../support/shared-broker.ts'
import { sqlUser } from '../support/sql-user.ts'

const node = await sharedBroker()
const api = apiOf(node.url)
/** Generous for a busy machine. The tests also count wake-ups, which is more precise. */
const slackMs = 5_000
/** How long users leave transactions open: longer than the interval of due polls and two leases of 1 s. */
const openMs = Number(process.env.ROUSE_TEST_OPEN_SECONDS ?? 2.2) * 1_000
const timeout = 60_000 + 3 * openMs

test('a message enqueued in a transaction is delivered after its COMMIT, by NOTIFY', async (t) => {
  const queue = unique()
  const user = await sqlUser(t, node.database.url)
  const waiting = api.pop(queue, '?wait=true&timeout=20000')
  await untilWaiting(node, queue, 1)
  const wakes = await wakesDuring(node, async () => {
    await user.query('begin')
    await user.query(`select rouse.enqueue($1, '{"n": 1}')`, [queue])
    await user.query('commit')
    const begun = performance.now()
    const { body } = await waiting
    const tookMs = performance.now() - begun
    t.same(body.messages[0].data, { n: 1 })
    t.ok(tookMs < slackMs, `${tookMs} ms after the COMMIT`)
  })
  t.match(wakes, { notify: 1, fallback: 0, timer: 0 })
  t.equal(
    (await stateOf(node)).mode.mode,
    'healthy',
    'a notification does not make the node aggressive',
  )
})

test('a transaction that stays open blocks neither pushes nor pops of its partition', {
  timeout,
}, async (t) => {
  const queue = unique()
  const user = await sqlUser(t, node.database.url)
  await api.push({ queue, payload: 'before' })
  await user.query('begin')
  await user.query(`select rouse.enqueue($1, '"enqueued"')`, [queue])
  const begun = performance.now()
  const sent: unknown[] = ['before']
  const received: unknown[] = []
  // A request that waited for the transaction would never return, because it ends after this loop.
  for (let n = 0; performance.now() - begun < openMs; n += 1) {
    t.equal((await api.push({ queue, payload: n })).status, 201)
    sent.push(n)
    const { body } = await api.pop(queue, '?batch=10&autoAck=true')
    received.push(...body.messages.map(({ data }: { data: unknown }) => data))
    await pass(200)
  }
  t.same(received, sent)
  await user.query('commit')
  const enqueued = await api.pop(queue, '?wait=true&timeout=5000')
  t.equal(enqueued.body.messages[0].data, 'enqueued')
})

test('a message whose enqueue is rolled back is never delivered', async (t) => {
  const queue = unique()
  const user = await sqlUser(t, node.database.url)
  await user.query('begin')
  await user.query(`select rouse.enqueue($1, '1')`, [queue])
  await user.query('rollback')
  t.equal((await api.pop(queue, '?wait=true&timeout=1500')).status, 204)
})

test('a message enqueued with a delay is delivered when it is due, by a timer that NOTIFY set', async (t) => {
  const queue = unique()
  const user = await sqlUser(t, node.database.url)
  const waiting = api.pop(queue, '?wait=true&timeout=20000')
  await untilWaiting(node, queue, 1)
  const begun = performance.now()
  const wakes = await wakesDuring(node, async () => {
    await user.query(`select rouse.enqueue($1, '1', delay => interval '400 milliseconds')`, [queue])
    t.equal((await waiting).status, 200)
  })
  const tookMs = performance.now() - begun
  t.ok(tookMs >= 400 && tookMs < 400 + slackMs, `after ${tookMs} ms`)
  t.match(wakes, { timer: 1, notify: 0, fallback: 0 })
})

test('a direct INSERT into scheduled is notified as well', async (t) => {
  const queue = unique()
  const waiting = api.pop(queue, '?wait=true&timeout=20000')
  await untilWaiting(node, queue, 1)
  const wakes = await wakesDuring(node, async () => {
    await node.database.pool.query(
      `insert into rouse.scheduled (queue, partition, due_at, message_id, payload, origin, created_at)
       values ($1, 'p', now(), gen_random_uuid(), '1', 'sql', now())`,
      [queue],
    )
    t.equal((await waiting).status, 200)
  })
  t.match(wakes, { notify: 1 })
})

/** Leases a message over HTTP; returns the id of the lease for use in SQL. */
async function heldLease(queue: string, query = ''): Promise<string> {
  await api.pop(queue, query)
  const { rows } = await node.database.pool.query<{ id: string }>(
    `select s.id from rouse.leases s join rouse.groups g on g.id = s.group_id
     join rouse.queues q on q.id = g.queue_id where q.name = $1`,
    [queue],
  )
  return rows[0]?.id ?? ''
}

test('an open ack_in blocks no push, keeps its lease, and frees the lane with its COMMIT', {
  timeout,
}, async (t) => {
  const queue = unique()
  const user = await sqlUser(t, node.database.url)
  await api.push({ queue, partition: 'p', payload: 1 })
  const lease = await heldLease(queue, '?leaseSeconds=1')
  await user.query('begin')
  await user.query('select rouse.ack_in($1)', [lease])
  const begun = performance.now()
  t.equal((await api.push({ queue, partition: 'p', payload: 2 })).status, 201)
  t.ok(performance.now() - begun < slackMs, 'a push to that lane is not blocked')
  await pass(openMs)
  const waiting = api.pop(queue, '?wait=true&timeout=20000')
  await untilWaiting(node, queue, 1)
  const wakes = await wakesDuring(node, async () => {
    await user.query('commit')
    const { body } = await waiting
    t.match(body.messages, [{ data: 2, attempt: 1 }], 'the first was not redelivered')
  })
  t.match(wakes, { notify: 1, fallback: 0 })
})

test('a message whose ack_in is rolled back is redelivered when its lease expires', async (t) => {
  const queue = unique()
  const user = await sqlUser(t, node.database.url)
  await api.push({ queue, payload: 1 })
  const lease = await heldLease(queue, '?leaseSeconds=1')
  await user.query('begin')
  await user.query('select rouse.ack_in($1)', [lease])
  await user.query('rollback')
  const { body } = await api.pop(queue, '?wait=true&timeout=5000')
  t.match(body.messages, [{ data: 1, attempt: 2 }])
})

test('with ordering none, other pops take from a lane with an open ack_in', {
  timeout,
}, async (t) => {
  const queue = unique()
  const user = await sqlUser(t, node.database.url)
  await api.post('/configure', { queue, options: { ordering: 'none' } })
  await api.push({ queue, payload: 1 }, { queue, payload: 2 })
  const lease = await heldLease(queue)
  await user.query('begin')
  await user.query('select rouse.ack_in($1)', [lease])
  await pass(openMs)
  const { body } = await api.pop(queue)
  t.same(body.messages[0].data, 2)
  await user.query('rollback')
})
