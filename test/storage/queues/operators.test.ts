// Operations on whole queues and groups are refused while a consumer's transaction is open. Their wait for
// other locks is limited.
import { ack, configure, deleteGroup, deleteQueue, promoteDue, purge, seek } from '@rouse/storage'
import { eventually } from '@rouse/testkit'
import { test } from 'tap'
import { inconsistencies } from '../support/consistency.ts'
import { finish, item, openStorage, payloads, refusal, type Storage } from '../support/storage.ts'
import { within } from '../support/within.ts'

type Operation = (storage: Storage) => Promise<unknown>

const operations: Record<string, Operation> = {
  'a seek': ({ pool }) => seek(pool, { queue: 'q', group: 'g', to: new Date(0) }),
  'a purge': ({ pool }) => purge(pool, 'q'),
  'the deletion of the queue': ({ pool }) => deleteQueue(pool, 'q'),
  'the deletion of the group': ({ pool }) => deleteGroup(pool, 'q', 'g'),
  'a new limit of what is in flight': ({ pool }) =>
    configure(pool, { queue: 'q', options: { maxInFlight: 5 } }),
}

for (const ordering of ['partition', 'none']) {
  for (const [name, operation] of Object.entries(operations)) {
    test(`${name} is refused while a consumer's transaction is open (ordering ${ordering})`, async (t) => {
      const storage = await openStorage(t)
      const { begin, lease, rows, send, set, take } = storage
      await set('q', { ordering })
      await send('q', 'p', [1, 2])
      await send('q', 'other', ['other'])
      const held = await lease('q', { partition: 'p' })
      const consumer = await begin()
      await consumer.query('select rouse.ack_in($1)', [held.leaseId])
      const before = await dump(rows)
      t.match(await within(refusal(operation(storage)), 1_000), {
        state: 'RS409',
        detail: { code: 'consumer_transaction_open', leases: 1, oldestLeaseAgeMs: Number },
      })
      t.same(await dump(rows), before, 'nothing has changed')
      await within(send('q', 'p', ['pushed']), 1_000)
      t.same(payloads(await take('q', { partition: 'other' })), ['other'], 'pops go on')
      await consumer.query('commit')
      await promoteDue(storage.pool)
      await operation(storage)
    })
  }
}

for (const [name, barrier] of [
  ['a seek', 'seek-checked'],
  ['a purge', 'purge-checked'],
] as const) {
  test(`${name} is refused if a consumer's transaction begins after its check`, async (t) => {
    const storage = await openStorage(t)
    const { armBarrier, begin, lease, rows, send } = storage
    await send('q', 'p', [1, 2])
    const held = await lease('q')
    const checked = await armBarrier(barrier)
    const refused = refusal((operations[name] as Operation)(storage))
    await checked.reached()
    const consumer = await begin()
    await consumer.query('select rouse.ack_in($1)', [held.leaseId])
    const before = await dump(rows)
    await checked.release()
    t.match(await refused, { state: 'RS409', detail: { code: 'consumer_transaction_open' } })
    t.same(await dump(rows), before)
  })
}

for (const ordering of ['partition', 'none']) {
  test(`an operation waits for an ack in progress (ordering ${ordering})`, async (t) => {
    const { armBarrier, lease, pool, rows, send, set } = await openStorage(t)
    await set('q', { ordering })
    await send('q', 'p', [1, 2])
    const held = await lease('q', { batch: 2 })
    const acking = await armBarrier(ordering === 'none' ? 'ack-lease-written' : 'ack-lease-locked')
    const acked = ack(pool, [item(held)])
    await acking.reached()
    const purged = purge(pool, 'q')
    // The purge waits for the lane, or for the advisory lock of an unordered lease.
    await eventually(async () => {
      const waiting = await rows(
        `select from pg_stat_activity where wait_event_type = 'Lock' and query like '%rouse.purge%'`,
      )
      return waiting.length === 1
    })
    await acking.release()
    t.same((await acked).rejected, [])
    t.equal(await purged, 2)
    t.same(await rows('select from rouse.leases'), [])
  })
}

test('an operation that is refused does not reject an ack', async (t) => {
  const { begin, lease, pool, send } = await openStorage(t)
  await send('q', 'a', [1])
  await send('q', 'b', [1])
  const held = await lease('q', { partition: 'a' })
  const other = await lease('q', { partition: 'b' })
  const consumer = await begin()
  await consumer.query('select rouse.ack_in($1)', [held.leaseId])
  t.match(await refusal(purge(pool, 'q')), { detail: { code: 'consumer_transaction_open' } })
  t.same((await finish(pool, other)).rejected, [])
})

test('an operation that cannot get a lock fails in time', async (t) => {
  const storage = await openStorage(t)
  const { begin, send, take } = storage
  await send('q', 'p', [1])
  await take('q')
  const holder = await begin()
  await holder.query(`select from rouse.queues where name = 'q' for update`)
  for (const [name, operation] of Object.entries(operations)) {
    t.match(await within(refusal(operation(storage)), 2_000), { state: '55P03' }, name)
  }
})

test('a push to a new partition during a seek to the end is delivered', async (t) => {
  const { armBarrier, begin, pool, send, take, waiting } = await openStorage(t)
  await send('q', 'p', [1])
  await take('q', { autoAck: true })
  const operator = await begin()
  const seeking = await armBarrier('seek-locked')
  const sought = seek(operator, { queue: 'q', group: 'g', to: 'end' })
  await seeking.reached()
  const first = send('q', 'new', [1])
  await Promise.race([first, waiting(1)])
  await seeking.release()
  await sought
  const second = send('q', 'new', [2])
  await Promise.race([second, waiting(2)])
  await operator.query('commit')
  await Promise.all([first, second])
  t.same(await inconsistencies(pool), [])
  t.same(new Set(payloads(await take('q', { batch: 9 }))), new Set([1, 2]))
})

/** Everything that an operation could change. */
async function dump(rows: Storage['rows']): Promise<unknown> {
  return rows(
    `select (select jsonb_agg(q) from rouse.queues q), (select jsonb_agg(p order by p.id) from rouse.partitions p),
       (select jsonb_agg(g) from rouse.groups g), (select jsonb_agg(l order by l.partition_id) from rouse.lanes l),
       (select jsonb_agg(s) from rouse.leases s), (select jsonb_agg(r) from rouse.removals r)`,
  )
}
