// Rules 5, 6 and 7 of docs/storage.md: which calls write `ready`, `lease_id` and `blocked_until` of a lane,
// and what the result `empty` means.
import { ack, extend, promoteDue, reapExpired, release } from '@rouse/storage'
import { test } from 'tap'
import { untilNoRetry } from '../support/load.ts'
import { finish, item, openStorage, payloads, start } from '../support/storage.ts'

// Rule 5: never two live leases on an ordered lane.

test('a leased lane delivers nothing, however many messages it has', async (t) => {
  const { lease, send, take } = await openStorage(t)
  await send('q', 'p', [1, 2, 3])
  t.same(payloads(await lease('q')), [1])
  t.match(await take('q', { batch: 9 }), { status: 'empty', leases: [] })
})

for (const barrier of ['pop-lane-settling', 'pop-lane-leased']) {
  test(`a pop stopped at ${barrier} keeps its lane from other pops`, async (t) => {
    const { armBarrier, pool, rows, send, take } = await openStorage(t)
    await send('q', 'p', [1, 2])
    await take('q', { partition: 'nowhere' })
    const popping = await armBarrier(barrier)
    const first = take('q')
    await popping.reached()
    t.match(await take('q', { batch: 5, partitions: 5 }), { status: 'contended', leases: [] })
    await reapExpired(pool)
    await promoteDue(pool)
    t.equal((await take('q', { partition: 'p' })).status, 'contended')
    await popping.release()
    t.same(payloads(await first), [1])
    t.equal((await rows('select from rouse.leases')).length, 1)
  })
}

test('two pops at once never lease one lane twice', async (t) => {
  const { armBarrier, rows, send, take } = await openStorage(t)
  await send('q', 'p', [1, 2, 3])
  await take('q', { partition: 'nowhere' })
  const popping = await armBarrier('pop-lane-locked')
  const pops = [take('q'), take('q'), take('q', { partitions: 2 })]
  await popping.reached(1)
  await popping.release()
  const results = await Promise.all(pops)
  t.equal(results.flatMap(({ leases }) => leases).length, 1)
  t.equal((await rows('select from rouse.leases')).length, 1)
})

test('a lane is not popped before the last ack of its lease has committed', async (t) => {
  const { begin, lease, send, take } = await openStorage(t)
  await send('q', 'p', [1, 2])
  const first = await lease('q')
  const client = await begin()
  await finish(client, first)
  t.notSame((await take('q')).status, 'messages')
  await client.query('commit')
  t.same(payloads(await take('q')), [2])
})

test('an ack and a reap of one lease at the same moment end it once', async (t) => {
  const { advanceClock, armBarrier, freezeClock, lane, lease, pool, rows, send, waiting } =
    await openStorage(t)
  await freezeClock(start)
  await send('q', 'p', [1, 2])
  const held = await lease('q', { leaseMs: 1_000 })
  const acking = await armBarrier('ack-locked')
  const late = ack(pool, [item(held), item(held)])
  await acking.reached()
  await advanceClock(5_000)
  t.same(await reapExpired(pool), [], 'a lane that an ack holds is left for later')
  await acking.release()
  t.same((await late).rejected, [0, 1], 'it had expired when the ack read the clock')
  await reapExpired(pool)
  t.equal((await rows('select from rouse.redeliveries')).length, 1)
  t.equal((await lane()).lease_id, null)
  await waiting(0)
})

test('an ack of one message reads the clock after it has locked the lane', async (t) => {
  const { advanceClock, begin, freezeClock, lease, pool, send, waiting } = await openStorage(t)
  await freezeClock(start)
  await send('q', 'p', [1, 2])
  const held = await lease('q', { leaseMs: 1_000 })
  const holder = await begin()
  await holder.query('select from rouse.lanes for no key update')
  const late = untilNoRetry(() => ack(pool, [item(held)]))
  await waiting()
  await advanceClock(1_000)
  await holder.query('commit')
  t.same((await late).rejected, [0])
})

test('an ack that waits for a reap finds its lease gone', async (t) => {
  const { advanceClock, armBarrier, freezeClock, lease, pool, rows, send, take, waiting } =
    await openStorage(t)
  await freezeClock(start)
  await send('q', 'p', [1, 2])
  const held = await lease('q', { leaseMs: 1_000 })
  await advanceClock(1_000)
  const reaping = await armBarrier('reap-locked')
  const reap = reapExpired(pool)
  await reaping.reached()
  const late = untilNoRetry(() => finish(pool, held))
  await waiting()
  t.equal((await take('q')).status, 'empty', 'the lane is still leased')
  await reaping.release()
  await reap
  t.same((await late).rejected, [0])
  const next = await lease('q')
  t.match(next, { attempt: 2 })
  t.equal((await rows('select from rouse.leases')).length, 1)
})

test('a release and an extend of one lease run one after the other, and only one succeeds', async (t) => {
  const { armBarrier, lease, pool, rows, send, waiting } = await openStorage(t)
  await send('q', 'p', [1])
  const { leaseId } = await lease('q')
  const releasing = await armBarrier('release-locked')
  const given = release(pool, [leaseId])
  await releasing.reached()
  const extended = untilNoRetry(() => extend(pool, [{ leaseId, durationMs: 60_000 }]))
  await waiting()
  await releasing.release()
  t.equal((await given).released.size, 1)
  t.same(await extended, [null])
  t.same(await rows('select from rouse.leases'), [])
})

test('with ordering none a lane never names a lease', async (t) => {
  const { lane, lease, send, set } = await openStorage(t)
  await set('q', { ordering: 'none' })
  await send('q', 'p', [1, 2, 3])
  t.same(payloads(await lease('q')), [1])
  t.same(payloads(await lease('q')), [2])
  t.equal((await lane()).lease_id, null)
})

// Rule 6: push sets ready, only settle clears it.

test('a drained lane is no longer ready, and the next push makes it so again', async (t) => {
  const { lane, lease, pool, send, take } = await openStorage(t)
  await send('q', 'p', [1])
  await finish(pool, await lease('q'))
  await take('q')
  t.equal((await lane()).ready, false)
  await send('q', 'p', [2])
  t.equal((await lane()).ready, true)
  t.same(payloads(await take('q')), [2])
})

test('a push does not write a lane that is ready', async (t) => {
  const { rows, send, take } = await openStorage(t)
  await send('q', 'p', [1, 2])
  await take('q', { autoAck: true })
  const version = () => rows('select ctid, xmin from rouse.lanes')
  const before = await version()
  await send('q', 'p', [3])
  t.same(await version(), before)
})

for (const barrier of ['push-locked', 'push-head-moved', 'push-inserted', 'push-woken']) {
  test(`a lane drained while a push is stopped at ${barrier} stays ready`, async (t) => {
    const { armBarrier, lane, send, take } = await openStorage(t)
    await send('q', 'p', [1])
    await take('q', { partition: 'nowhere' })
    const pushing = await armBarrier(barrier)
    const late = send('q', 'p', [2])
    await pushing.reached()
    t.same(payloads(await take('q', { batch: 9, autoAck: true })), [1])
    t.equal((await lane()).ready, true, 'the partition is locked: a push is coming')
    await pushing.release()
    await late
    t.same(payloads(await take('q', { batch: 9 })), [2])
  })
}

for (const [barrier, options] of [
  ['pop-lane-settling', {}],
  ['pop-lane-leased', {}],
  ['pop-lanes-settling', { partitions: 2 }],
  ['pop-lanes-leased', { partitions: 2 }],
  ['pop-settling', { partition: 'p' }],
  ['pop-written', { partition: 'p' }],
] as const) {
  test(`a push that meets a pop at ${barrier} makes the lane ready after it`, async (t) => {
    const { armBarrier, lane, pool, send, take, waiting } = await openStorage(t)
    await send('q', 'p', [1])
    await take('q', { partition: 'nowhere' })
    const settling = await armBarrier(barrier)
    const drains = take('q', options)
    await settling.reached()
    const late = send('q', 'p', [2])
    await waiting()
    await settling.release()
    const { leases } = await drains
    await late
    t.equal((await lane()).ready, true)
    for (const lease of leases) await finish(pool, lease)
    t.same(payloads(await take('q')), [2])
  })
}

for (const [barrier, options] of [
  ['pop-lane-locked', {}],
  ['pop-lanes-locked', { partitions: 2 }],
  ['pop-lanes-offered', { partitions: 2 }],
  ['pop-locked', { partitions: 2, autoAck: true }],
] as const) {
  test(`a push that committed before the pop settles is seen by it: ${barrier}`, async (t) => {
    const { armBarrier, lane, pool, send, take } = await openStorage(t)
    await send('q', 'p', [1])
    await take('q', { partition: 'nowhere' })
    const locked = await armBarrier(barrier)
    const drains = take('q', options)
    await locked.reached()
    await send('q', 'p', [2])
    await locked.release()
    const { leases } = await drains
    t.equal((await lane()).ready, true)
    if (!('autoAck' in options)) for (const lease of leases) await finish(pool, lease)
    t.same(payloads(await take('q')), [2])
  })
}

// Rule 7: a pop returns `empty` only if no lane has anything to deliver.

test('a pop that finds nothing anywhere returns empty', async (t) => {
  const { send, take } = await openStorage(t)
  t.equal((await take('no such queue')).status, 'empty')
  await send('q', 'p', [1])
  await take('q', { autoAck: true })
  t.equal((await take('q')).status, 'empty')
})

test('a pop skips drained lanes and finds the one with messages', async (t) => {
  const { rows, send, take } = await openStorage(t)
  for (let i = 0; i < 12; i += 1) await send('q', `p${i}`, [i])
  await take('q', { batch: 99, partitions: 99, autoAck: true })
  await send('q', 'p11', ['last'])
  await rows('update rouse.lanes set ready = true')
  t.same(payloads(await take('q')), ['last'])
})

test('a pop that skips the only lane with messages returns contended, not empty', async (t) => {
  const { begin, send, take } = await openStorage(t)
  await send('q', 'p', [1])
  await take('q', { partition: 'nowhere' })
  const client = await begin()
  await client.query('select from rouse.lanes for no key update')
  t.match(await take('q'), { status: 'contended', leases: [] })
  t.match(await take('q', { partition: 'p' }), { status: 'contended' })
  await client.query('rollback')
  t.same(payloads(await take('q')), [1])
})

test('a pop that reaches its limit of drained lanes returns contended, and the next one continues', async (t) => {
  const { rows, send, take } = await openStorage(t)
  for (let i = 0; i < 30; i += 1) await send('q', `p${i}`, [i])
  await take('q', { batch: 99, partitions: 99, autoAck: true })
  await send('q', 'p29', ['far'])
  await rows('update rouse.lanes set ready = true')
  let result = await take('q')
  for (let calls = 0; result.status === 'contended' && calls < 5; calls += 1)
    result = await take('q')
  t.same(payloads(result), ['far'])
})

test('a pop that starts in the middle continues with the lanes before', async (t) => {
  const { send, take } = await openStorage(t)
  await send('q', 'a', ['a'])
  await send('q', 'b', ['b'])
  t.same(payloads(await take('q', { after: '1' })), ['b'])
  t.same(payloads(await take('q', { after: '1' })), ['a'])
  t.equal((await take('q', { after: '1' })).status, 'empty')
})
