// Unique keys beside other calls: producers of the same key, pops, promotions, purges, transactions.
import {
  ack,
  cancelMessage,
  enqueue,
  enqueueMany,
  promoteDue,
  promotePartition,
  purge,
  push,
  transaction,
} from '@rouse/storage'
import { eventually } from '@rouse/testkit'
import { test } from 'tap'
import { retainRound } from '../support/retain-round.ts'
import { finish, item, message, payloads, refusal } from '../support/storage.ts'
import { keyed, openUnique } from '../support/unique.ts'

for (const scope of ['queue', 'partition'] as const) {
  for (const onConflict of ['ignore', 'replace', 'reject'] as const) {
    test(`of 32 producers at once one stores its message (${scope}, ${onConflict})`, async (t) => {
      const { add, lease, pool, taken } = await openUnique(t)
      const options = (i: number) => (scope === 'queue' ? { partition: `p${i % 4}` } : {})
      // The first round inserts the key, the second one finds it free.
      await add('before', { scope }, options(0))
      await finish(pool, await lease('q'))
      const pushed = await Promise.allSettled(
        Array.from({ length: 32 }, (_, i) => add(i, { scope, onConflict }, options(i))),
      )
      const statuses = pushed.map((result) =>
        result.status === 'fulfilled' ? result.value.status : result.reason.code,
      )
      const others = { ignore: 'duplicate', replace: 'replaced', reject: 'RS409' }[onConflict]
      t.equal(statuses.filter((status) => status === 'queued').length, 1)
      t.equal(statuses.filter((status) => status === others).length, 31, statuses.join())
      t.equal((await taken()).length, 1)
    })
  }
}

test('a push waits for another one, in another partition, that takes a free key', async (t) => {
  const { add, armBarrier, lease, pool, waiting } = await openUnique(t)
  await add('before', {}, { partition: 'a' })
  await finish(pool, await lease('q'))
  const locking = await armBarrier('unique-locked')
  const pushes = ['a', 'b'].map((partition) => add(partition, {}, { partition }))
  await locking.reached(1)
  await waiting(1)
  await locking.release()
  const statuses = (await Promise.all(pushes)).map(({ status }) => status)
  t.same(statuses.toSorted(), ['duplicate', 'queued'])
})

for (const barrier of ['pop-lane-locked', 'pop-lane-offered', 'pop-lane-leased']) {
  test(`a replace waits for a pop at ${barrier}, and does not change what it delivers`, async (t) => {
    const { add, armBarrier, take, taken, waiting } = await openUnique(t)
    await take('q')
    await add('old')
    const popping = await armBarrier(barrier)
    const popped = take('q')
    await popping.reached()
    const replaced = add('new', { onConflict: 'replace' })
    await waiting()
    await popping.release()
    t.same(payloads(await popped), ['old'])
    t.match(await replaced, { status: 'queued' })
    t.same(await taken(), ['new'])
  })
}

for (const [what, options] of [
  ['a pop', {}],
  ['a pop in the general form', { ttl: 1_000 }],
] as const) {
  test(`${what} beside a replace does not wait, and delivers only the new content`, async (t) => {
    const { add, armBarrier, take, taken } = await openUnique(t, options)
    await take('q')
    await add('old')
    const popping = await armBarrier('pop-begun')
    const popped = take('q')
    await popping.reached()
    t.match(await add('new', { onConflict: 'replace' }), { status: 'replaced' })
    await popping.release()
    t.same(payloads(await popped), ['new'], 'also to a pop that began before')
    await add('second', { key: 'other' })
    const replacing = await armBarrier('unique-replaced')
    const replaced = add('third', { key: 'other', onConflict: 'replace' })
    await replacing.reached()
    t.match(await take('q'), { status: 'contended' })
    await replacing.release()
    t.match(await replaced, { status: 'replaced' })
    t.same(await taken(), ['third'])
  })
}

test('the first pop of a new group waits for a replace, and gets the new content', async (t) => {
  const { add, armBarrier, take, waiting } = await openUnique(t)
  await add('old')
  const replacing = await armBarrier('unique-locked')
  const replaced = add('new', { onConflict: 'replace' })
  await replacing.reached()
  const popped = take('q', { group: 'new' })
  await waiting()
  await replacing.release()
  t.match(await replaced, { status: 'replaced' })
  t.same(payloads(await popped), ['new'])
})

test('a replace that meets a promotion is repeated, and finds the message in the log', async (t) => {
  const { add, advanceClock, armBarrier, pool, taken } = await openUnique(t)
  const { messageId } = await add('old', {}, { partition: 'a', delayMs: 1_000 })
  await advanceClock(1_000)
  const promoting = await armBarrier('promote-taken')
  const promoted = promoteDue(pool)
  await promoting.reached()
  const replace = () => add('new', { onConflict: 'replace' }, { partition: 'b', delayMs: 9_000 })
  t.match(await refusal(replace()), { state: 'RS001' })
  await promoting.release()
  await promoted
  t.match(await replace(), { status: 'replaced', messageId })
  t.same(await taken(), ['new'])
})

test('a promotion passes a message that is being replaced', async (t) => {
  const { add, advanceClock, armBarrier, pool, taken } = await openUnique(t)
  const { messageId } = await add('old', {}, { partition: 'a', delayMs: 1_000 })
  await advanceClock(1_000)
  const replacing = await armBarrier('unique-replaced')
  const replaced = add('new', { onConflict: 'replace' }, { partition: 'b', delayMs: 1_000 })
  await replacing.reached()
  await promoteDue(pool)
  await replacing.release()
  t.match(await replaced, { status: 'replaced', messageId })
  await promoteDue(pool)
  t.same(await taken(), [])
  await advanceClock(1_000)
  await promoteDue(pool)
  t.same(await taken(), ['new'])
})

test('a purge waits for a push that has found its key taken, and a push for a purge', async (t) => {
  const { add, armBarrier, pool, rows, taken } = await openUnique(t)
  await add('old')
  const pushing = await armBarrier('unique-keys-locked')
  const duplicate = add('new')
  await pushing.reached()
  const purged = purge(pool, 'q')
  await eventually(async () => {
    const found = await rows(
      `select from pg_stat_activity where datname = current_database() and query like '%rouse.purge%'
         and wait_event_type = 'Lock' and pid <> pg_backend_pid()`,
    )
    return found.length === 1
  })
  await pushing.release()
  t.match(await duplicate, { status: 'duplicate' }, 'it was before the purge')
  await purged
  await add('third')
  const purging = await armBarrier('purge-locked')
  const again = purge(pool, 'q')
  await purging.reached()
  const fourth = add('fourth')
  await purging.release()
  await again
  t.match(await fourth, { status: 'queued' })
  t.same(await taken(), ['fourth'])
})

test('a purge in steps waits for a push that takes a key, too', async (t) => {
  const { add, armBarrier, pool, rows } = await openUnique(t)
  await rows(`create or replace function rouse.purges_in_steps(p_queue_id integer, p_queue text) returns boolean
    language sql stable as 'select true'`)
  await add('old')
  const pushing = await armBarrier('unique-keys-locked')
  const second = add('second', { key: 'other' })
  await pushing.reached()
  const purged = purge(pool, 'q')
  await eventually(async () => {
    const found = await rows(
      `select from pg_stat_activity where datname = current_database() and query like '%rouse.purge%'
         and wait_event_type = 'Lock' and pid <> pg_backend_pid()`,
    )
    return found.length === 1
  })
  await pushing.release()
  t.match(await second, { status: 'queued' })
  t.equal(await purged, null)
  t.match(await add('third'), { status: 'queued' }, 'before the first step')
})

test('retention does not take a key that a push takes at that moment', async (t) => {
  const { add, armBarrier, pool, rows } = await openUnique(t)
  await cancelMessage(pool, (await add(1)).messageId)
  const pushing = await armBarrier('unique-locked')
  const second = add(2)
  await pushing.reached()
  await retainRound(pool)
  await pushing.release()
  const { messageId } = await second
  t.match(await add(3), { status: 'duplicate', messageId })
  await cancelMessage(pool, messageId)
  const sweeping = await armBarrier('retain-unique-locked')
  const swept = retainRound(pool)
  await sweeping.reached()
  const third = add(4)
  await sweeping.release()
  await swept
  t.match(await third, { status: 'queued' })
  t.match(await add(5), { status: 'duplicate', messageId: (await third).messageId })
  t.equal((await rows('select from rouse.unique_keys')).length, 1)
})

test('a transaction that completes a message may push the next one with its key', async (t) => {
  const { add, lease, pool, taken } = await openUnique(t)
  await add(1)
  const held = await lease('q')
  const { pushed } = await transaction(pool, { acks: [item(held)], pushes: [keyed(2)] })
  t.match(pushed, [{ status: 'queued' }])
  t.match(await add(3), { status: 'duplicate', messageId: pushed[0]?.messageId })
  const [next] = (await lease('q').then((found) => [found])) as [typeof held]
  const refused = transaction(pool, {
    acks: [item(next)],
    pushes: [keyed(4, { key: 'other' }), keyed(5), keyed(6, { onConflict: 'reject' })],
  })
  t.match(await refusal(refused), { detail: { code: 'unique_conflict', item: 3 } })
  t.match(await ack(pool, [item(next)]), { rejected: [] }, 'nothing of it was done')
  t.same(await taken(), [])
})

test('transactions that acknowledge and replace what the other one pushes and acknowledges do not deadlock', async (t) => {
  const { add, armBarrier, lease, pool, waiting } = await openUnique(t)
  const replace = { onConflict: 'replace' } as const
  for (const partition of ['a', 'b']) await add(partition, { key: partition }, { partition })
  const a = await lease('q', { partition: 'a' })
  const b = await lease('q', { partition: 'b' })
  await add('a2', { key: 'x' }, { partition: 'a' })
  await add('b2', { key: 'y' }, { partition: 'b' })
  const acked = await armBarrier('transaction-locked')
  const call = (held: typeof a, partition: string, keys: string[]) =>
    transaction(pool, {
      acks: [item(held)],
      pushes: keys.map((key) => keyed(`${partition} ${key}`, { key, ...replace }, { partition })),
    })
  const calls = [call(a, 'b', ['x', 'y']), call(b, 'a', ['y', 'x'])]
  await acked.reached(1)
  await waiting(1)
  await acked.release()
  const results = await Promise.all(calls)
  t.match(
    results.flatMap(({ pushed }) => pushed.map(({ status }) => status)),
    ['replaced', 'replaced', 'replaced', 'replaced'],
  )
})

test('keys of SQL producers are checked when their messages are due', async (t) => {
  const { add, advanceClock, begin, lease, pool, taken } = await openUnique(t)
  const one = (payload: unknown, rest: object = {}) => ({
    queue: 'q',
    payload,
    unique: { key: 'k' },
    ...rest,
  })
  const producer = await begin()
  await enqueueMany(producer, [one(1)])
  await producer.query(`select rouse.enqueue('q', '2', "unique" => '{"key": "k"}')`)
  const first = await add(3)
  t.match(first, { status: 'queued' }, 'an open transaction holds no key')
  await producer.query('commit')
  await promoteDue(pool)
  await finish(pool, await lease('q'))
  await enqueueMany(pool, [one(4), one(5), one(6, { unique: { key: 'k', onConflict: 'replace' } })])
  await promoteDue(pool)
  t.match(await add(7), { status: 'duplicate' })
  await enqueueMany(pool, [one(8, { unique: { key: 'k', onConflict: 'replace' } })])
  await promoteDue(pool)
  t.same(await taken(), [8])
  const later = await add(9, { key: 'later' }, { delayMs: 60_000 })
  await enqueueMany(pool, [
    one(10, { unique: { key: 'later', onConflict: 'replace' }, delayMs: 1_000 }),
    one(11, { unique: { key: 'window', until: { windowMs: 1_000 } } }),
  ])
  await promoteDue(pool)
  t.match(await add(12, { key: 'window' }), { status: 'duplicate' })
  await advanceClock(1_000)
  t.match(await add(13, { key: 'window' }), { status: 'queued' })
  await promoteDue(pool)
  await promoteDue(pool)
  t.same(new Set(await taken()), new Set([10, 11, 13]), 'the scheduled one is due with the other')
  t.match(await add(14, { key: 'later' }), { status: 'duplicate', messageId: later.messageId })
})

test('SQL producers get clear errors for unique keys', async (t) => {
  const { pool, rows } = await openUnique(t)
  const of = (unique: unknown) => enqueueMany(pool, [{ queue: 'q', payload: 1, unique }])
  for (const [unique, field] of [
    [{ key: 'k', onConflict: 'reject' }, 'unique.onConflict'],
    [{ key: 'k', onConflict: 'drop' }, 'unique.onConflict'],
    [{ key: 'k', scope: 'cluster' }, 'unique.scope'],
    [{ key: 'k', until: 'done' }, 'unique.until'],
    [{ key: 'k', until: { windowMs: 0 } }, 'unique.until'],
    [{ key: 'k', ttl: 1 }, 'unique.ttl'],
    [{ key: '' }, 'unique.key'],
    [{}, 'unique.key'],
  ] as const) {
    t.match(await refusal(of(unique)), {
      state: 'RS400',
      detail: { field: `messages[0].${field}` },
    })
  }
  t.same(await rows('select from rouse.scheduled'), [])
})

test('a promotion that needs a queue that is locked leaves the partition to the call that waits', async (t) => {
  const { begin, pool, taken, waiting } = await openUnique(t)
  await push(pool, [message('q', 'p', 'there')])
  await enqueueMany(pool, [{ queue: 'q', payload: 1, partition: 'p', unique: { key: 'k' } }])
  await enqueue(pool, { queue: 'q', payload: '2', partition: 'other' })
  const owner = await begin()
  await owner.query(`select from rouse.queues where name = 'q' for no key update`)
  await promoteDue(pool)
  const waits = promotePartition(pool, { queue: 'q', partition: 'p' }, { limit: 10, lockMs: 5_000 })
  await waiting()
  await owner.query('commit')
  await waits
  await promoteDue(pool)
  t.same(new Set(await taken()), new Set(['there', 1, 2]))
})
