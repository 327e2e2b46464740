// Rule 12 of docs/storage.md: groups and partitions may be created concurrently, and each group gets every
// message.
import { ack, deleteGroup, push, seek } from '@rouse/storage'
import { test } from 'tap'
import { finish, item, message, openStorage, payloads, refusal, start } from '../support/storage.ts'

test('every group gets every message, whatever other groups do with it', async (t) => {
  const { lease, pool, send, take } = await openStorage(t)
  await send('q', 'p', [1, 2])
  const a = await lease('q', { group: 'a', batch: 2 })
  await ack(pool, [item(a), item(a, 1, 'failed', { delayMs: 60_000 })])
  t.same(payloads(await take('q', { group: 'b', batch: 9 })), [1, 2])
  t.equal((await take('q', { group: 'a' })).status, 'empty')
  t.same(payloads(await take('q', { group: 'c', batch: 9 })), [1, 2])
})

for (const barrier of ['push-locked', 'push-head-moved', 'push-inserted', 'push-woken']) {
  for (const subscription of ['all', 'new'] as const) {
    test(`a group of ${subscription} created while a push is stopped at ${barrier} misses nothing`, async (t) => {
      const { armBarrier, send, take } = await openStorage(t)
      await send('q', 'p', ['old'])
      const pushing = await armBarrier(barrier)
      const late = send('q', 'p', ['late'])
      await pushing.reached()
      await take('q', { subscription, batch: 9, autoAck: true })
      await pushing.release()
      await late
      t.same(payloads(await take('q', { batch: 9 })), ['late'])
    })
  }
}

for (const barrier of ['subscribe-locked', 'subscribe-written']) {
  test(`a push to an existing partition passes a group being created at ${barrier}, and is delivered to it`, async (t) => {
    const { armBarrier, send, take } = await openStorage(t)
    await send('q', 'p', ['old'])
    const birth = await armBarrier(barrier)
    const first = take('q', { subscription: 'new', batch: 9 })
    await birth.reached()
    await send('q', 'p', ['meanwhile'])
    await birth.release()
    const came = payloads(await first)
    if (came.length === 0) came.push(...payloads(await take('q', { batch: 9 })))
    t.same(came, ['meanwhile'])
  })

  test(`a partition created beside a group at ${barrier} has its lane`, async (t) => {
    const { armBarrier, rows, send, take, waiting } = await openStorage(t)
    await send('q', 'p', ['old'])
    const birth = await armBarrier(barrier)
    const first = take('q', { batch: 9, autoAck: true })
    await birth.reached()
    const pushing = send('q', 'born', ['new'])
    await waiting()
    await birth.release()
    await Promise.all([first, pushing])
    t.equal((await rows('select from rouse.lanes')).length, 2)
    t.same(payloads(await take('q', { partition: 'born' })), ['new'])
  })
}

test('a group created beside a partition has a lane on it', async (t) => {
  const { armBarrier, rows, send, take, waiting } = await openStorage(t)
  await send('q', 'p', ['old'])
  const creating = await armBarrier('create-queues-locked')
  const pushing = send('q', 'born', ['new'])
  await creating.reached()
  const first = take('q', { batch: 9 })
  await waiting()
  await creating.release()
  await Promise.all([first, pushing])
  t.equal((await rows('select from rouse.lanes')).length, 2)
  t.same(payloads(await take('q', { partition: 'born' })), ['new'])
})

test('two pops that both create a group create one', async (t) => {
  const { armBarrier, rows, send, take, waiting } = await openStorage(t)
  await send('q', 'p', [1, 2])
  const birth = await armBarrier('subscribe-locked')
  const pops = [take('q'), take('q')]
  await birth.reached()
  await waiting()
  await birth.release()
  const results = await Promise.all(pops)
  t.equal(results.flatMap(({ leases }) => leases).length, 1)
  t.equal((await rows('select from rouse.groups')).length, 1)
  t.equal((await rows('select from rouse.lanes')).length, 1)
})

test('a new group begins at its subscription', async (t) => {
  const { advanceClock, freezeClock, pool, send, take } = await openStorage(t)
  await freezeClock(start)
  for (const payload of [1, 2, 3]) {
    await send('q', 'p', [payload])
    await advanceClock(1_000)
  }
  await push(pool, [message('q', 'p', 4), message('q', 'other', 4)])
  await advanceClock(1)
  const all = { batch: 9, partition: 'p' }
  t.same(payloads(await take('q', { ...all, group: 'all' })), [1, 2, 3, 4])
  t.same(payloads(await take('q', { ...all, group: 'new', subscription: 'new' })), [])
  const from = (ms: number) => ({ subscription: { fromMs: start + ms }, group: `from ${ms}` })
  t.same(payloads(await take('q', { ...all, ...from(1_000) })), [2, 3, 4], 'that moment included')
  t.same(payloads(await take('q', { ...all, ...from(1_001) })), [3, 4])
  t.same(payloads(await take('q', { ...all, ...from(-1) })), [1, 2, 3, 4])
  t.same(payloads(await take('q', { ...all, ...from(9_000) })), [])
  await send('q', 'p', [5])
  t.same(payloads(await take('q', { ...all, group: 'new' })), [5])
})

test('the subscription of a group that exists is not changed by a later pop', async (t) => {
  const { send, take } = await openStorage(t)
  await send('q', 'p', [1])
  await take('q', { subscription: 'new' })
  await send('q', 'p', [2])
  t.same(payloads(await take('q', { subscription: 'all', batch: 9 })), [2])
})

test('a seek back in time delivers everything since then again, once', async (t) => {
  const { advanceClock, freezeClock, lease, pool, send, take } = await openStorage(t)
  await freezeClock(start)
  for (const payload of [1, 2, 3]) {
    await send('q', 'p', [payload])
    await advanceClock(1_000)
  }
  await finish(pool, await lease('q', { batch: 9 }))
  const woken = await seek(pool, { queue: 'q', group: 'g', to: new Date(start + 1_000) })
  t.match(woken, [{ queue: 'q', partition: null, group: 'g', count: 2 }])
  t.same(payloads(await take('q', { batch: 9, autoAck: true })), [2, 3])
  t.equal((await take('q')).status, 'empty')
})

test('a seek to the end delivers only later messages', async (t) => {
  const { pool, send, take } = await openStorage(t)
  await send('q', 'p', [1, 2])
  await take('q', { partition: 'nowhere' })
  await seek(pool, { queue: 'q', group: 'g', to: 'end' })
  t.equal((await take('q')).status, 'empty')
  await send('q', 'p', [3])
  t.same(payloads(await take('q', { batch: 9 })), [3])
})

test('a push that meets a seek to the end is not lost', async (t) => {
  const { armBarrier, pool, send, take, waiting } = await openStorage(t)
  await send('q', 'p', [1])
  await take('q', { partition: 'nowhere' })
  const seeking = await armBarrier('seek-locked')
  const moved = seek(pool, { queue: 'q', group: 'g', to: 'end' })
  await seeking.reached()
  const late = send('q', 'p', [2])
  await waiting()
  await seeking.release()
  await Promise.all([moved, late])
  t.same(payloads(await take('q', { batch: 9 })), [2])
})

test('a deleted group starts over; a group that does not exist cannot seek', async (t) => {
  const { pool, send, take } = await openStorage(t)
  await send('q', 'p', [1])
  await take('q', { autoAck: true })
  t.equal(await deleteGroup(pool, 'q', 'g'), true)
  t.equal(await deleteGroup(pool, 'q', 'g'), false)
  t.match(await refusal(seek(pool, { queue: 'q', group: 'g', to: 'end' })), { state: 'RS404' })
  t.same(payloads(await take('q')), [1])
})
