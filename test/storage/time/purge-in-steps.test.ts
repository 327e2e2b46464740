// A queue that is too large to be purged in one call is purged in steps. They remove the messages that were
// pushed before the call, and keep later ones.
import { ack, enqueue, promoteDue, purge, push } from '@rouse/storage'
import { test } from 'tap'
import { inconsistencies } from '../support/consistency.ts'
import { purgeInSteps, removeAll, step } from '../support/removal-steps.ts'
import { item, message, openStorage, payloads, refusal, start } from '../support/storage.ts'
import { within } from '../support/within.ts'

test('a queue of more than 20,000 partitions is purged in steps by a short call', async (t) => {
  const { pool, rows, send } = await openStorage(t)
  await send('q', 'p', [1])
  const addPartitions = (count: number) =>
    rows(
      `insert into rouse.partitions (queue_id, name, last_created_at)
       select q.id, gen_random_uuid(), rouse.now() from rouse.queues q, generate_series(1, $1::integer)`,
      [count],
    )
  await addPartitions(19_999)
  t.equal(await purge(pool, 'q'), 1)
  await addPartitions(1)
  t.equal(await within(purge(pool, 'q'), 1_000), null)
})

test('a purge in steps removes what was pushed before it, and keeps what is pushed later', async (t) => {
  const storage = await openStorage(t)
  const { begin, freezeClock, lease, pool, rows, send, set, take } = storage
  await freezeClock(start)
  await set('q', { retryBackoffMs: [600_000] })
  await purgeInSteps(storage)
  await send('q', 'first', [1])
  await take('q', { partition: 'none yet' })
  await send('q', 'p', ['purged'])
  await send('q', 'failed', ['purged'])
  await ack(pool, [item(await lease('q', { partition: 'failed' }), 0, 'failed')])
  await push(pool, [message('q', 'p', 'scheduled', { transactionId: 'late', delayMs: 5_000 })])
  await push(pool, [message('q', 'p', 'due', { transactionId: 'due', delayMs: 1_000 })])
  const producer = await begin()
  await producer.query(`select rouse.enqueue('q', '"committed later"', 'sql')`)
  t.equal(await within(purge(pool, 'q'), 1_000), null)
  await freezeClock(start + 2_000)
  await send('q', 'p', ['pushed later'])
  await send('q', 'failed', ['behind it'])
  await producer.query('commit')
  await promoteDue(pool)
  const straddling = await lease('q', { partition: 'p', batch: 9 })
  t.same(payloads(straddling), ['purged', 'pushed later'], 'not purged yet; the one due is gone')
  t.match(await refusal(rows(`select rouse.redrive('q')`)), { detail: { code: 'queue_in_use' } })
  await removeAll(storage)
  const [{ messages }] = (await rows<{ messages: string }>(
    `select messages from rouse.stats('q')`,
  )) as [{ messages: string }]
  t.equal(Number(messages), 3)
  t.match(await ack(pool, [item(straddling, 0), item(straddling, 1)]), { rejected: [0] })
  t.same(payloads(await take('q', { partition: 'failed' })), ['behind it'])
  t.same(payloads(await take('q', { partition: 'sql' })), ['committed later'])
  t.match((await push(pool, [message('q', 'p', 1, { transactionId: 'due' })])).items, [
    { status: 'queued' },
  ])
  t.same(await inconsistencies(pool), [])
})

for (const ordering of ['partition', 'none']) {
  test(`a purge in steps is refused while a consumer's transaction is open (ordering ${ordering})`, async (t) => {
    const storage = await openStorage(t)
    const { begin, lease, pool, rows, send, set } = storage
    await purgeInSteps(storage)
    await set('q', { ordering })
    await send('q', 'p', [1, 2])
    const { leaseId } = await lease('q')
    const consumer = await begin()
    await consumer.query('select rouse.ack_in($1::uuid)', [leaseId])
    t.match(await within(refusal(purge(pool, 'q')), 1_000), {
      detail: { code: 'consumer_transaction_open', leases: 1 },
    })
    t.same(await rows('select from rouse.removals'), [])
    await consumer.query('commit')
    t.equal(await purge(pool, 'q'), null)
  })
}

test('a purge in steps returns to a partition that a transaction holds', async (t) => {
  const storage = await openStorage(t)
  const { begin, lease, pool, rows, send, take } = storage
  await purgeInSteps(storage)
  await send('q', 'first', [1])
  await take('q', { partition: 'none yet' })
  await send('q', 'p', [1])
  t.equal(await purge(pool, 'q'), null)
  const consumer = await begin()
  await consumer.query('select rouse.ack_in($1)', [(await lease('q', { partition: 'p' })).leaseId])
  const left = async () => (await rows('select from rouse.partitions where tail < head')).length
  for (let steps = 0; (await left()) > 1 && steps < 3_000; steps += 1) await step(storage)
  t.equal(await left(), 1)
  await consumer.query('commit')
  await removeAll(storage)
  t.equal(await left(), 0)
  await promoteDue(pool)
  t.same(await inconsistencies(pool), [])
})

for (const [name, delayMs] of [
  ['in the log', undefined],
  ['scheduled', 60_000],
] as const) {
  test(`after a purge in steps was requested, a key of a message that was ${name} is stored again before the step`, async (t) => {
    const storage = await openStorage(t)
    const { freezeClock, pool, send, take } = storage
    await freezeClock(start)
    await purgeInSteps(storage)
    await send('q', 'p', ['purged'])
    const pushed = (payload: string, delay?: number) =>
      push(pool, [message('q', 'p', payload, { transactionId: 'k', delayMs: delay })])
    await pushed('purged', delayMs)
    t.match((await pushed('again', delayMs)).items, [{ status: 'duplicate' }])
    await purge(pool, 'q')
    await freezeClock(start + 10)
    t.match((await pushed('kept')).items, [{ status: 'queued' }])
    t.match((await pushed('again')).items, [{ status: 'duplicate' }], 'and is remembered')
    await removeAll(storage)
    t.match((await pushed('again')).items, [{ status: 'duplicate' }], 'and not forgotten by steps')
    t.same(payloads(await take('q', { batch: 9 })), ['kept'])
    t.same(await inconsistencies(pool), [])
  })
}

test('a key that a SQL producer enqueues after a purge in steps was requested is stored before the step', async (t) => {
  const storage = await openStorage(t)
  const { freezeClock, pool, take } = storage
  await freezeClock(start)
  await purgeInSteps(storage)
  await push(pool, [message('q', 'p', 'purged', { transactionId: 'k' })])
  await purge(pool, 'q')
  await freezeClock(start + 10)
  const enqueued = () =>
    enqueue(pool, { queue: 'q', partition: 'p', payload: '"kept"', transactionId: 'k' })
  await enqueued()
  await promoteDue(pool)
  await enqueued()
  await promoteDue(pool)
  await removeAll(storage)
  t.same(payloads(await take('q', { batch: 9 })), ['kept'])
})
