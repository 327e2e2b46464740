// Unique keys of messages that expire by their own ttlMs.
import { ack, promoteDue, uniqueOf } from '@rouse/storage'
import { test } from 'tap'
import { item, payloads } from '../support/storage.ts'
import { openUnique } from '../support/unique.ts'

const ttlMs = 10_000
const expiring = { options: { ttlMs } }

for (const onConflict of ['ignore', 'replace', 'reject'] as const) {
  test(`a message holds its key until its ttlMs has passed, and not longer (${onConflict})`, async (t) => {
    const { add, advanceClock, pool, take, taken } = await openUnique(t)
    await take('q')
    const { messageId } = await add('old', {}, expiring)
    await advanceClock(ttlMs - 1)
    t.match(await add('early'), { status: 'duplicate', messageId })
    t.match(await uniqueOf(pool, messageId), { held: true })
    await advanceClock(1)
    t.match(await uniqueOf(pool, messageId), { held: false })
    const next = await add('new', { onConflict })
    t.match(next, { status: 'queued' })
    t.not(next.messageId, messageId)
    t.same(await taken(), ['new'], 'the one that expired is not delivered')
  })
}

test('without a consumer group, a message that expired releases its key, too', async (t) => {
  const { add, advanceClock, taken } = await openUnique(t)
  await add('old', {}, expiring)
  await advanceClock(ttlMs)
  t.match(await add('new'), { status: 'queued' })
  t.same(await taken(), ['new'])
})

test('a consumer keeps the key of a message that expires in its hands, and its failure releases it', async (t) => {
  const { add, advanceClock, lease, pool, taken } = await openUnique(t, { leaseTime: 3_600 })
  const { messageId } = await add('old', {}, expiring)
  const held = await lease('q')
  await advanceClock(ttlMs + 1)
  t.match(await add('early'), { status: 'duplicate', messageId })
  await ack(pool, [item(held, 0, 'failed')])
  t.match(await add('new'), { status: 'queued' })
  t.same(await taken(), ['new'], 'the failed one is not tried again')
})

test('a message that waits for its retry holds the key until it expires', async (t) => {
  const { add, advanceClock, lease, pool, taken } = await openUnique(t, {
    retryBackoffMs: [60_000],
  })
  const { messageId } = await add('old', {}, expiring)
  await ack(pool, [item(await lease('q'), 0, 'failed')])
  await advanceClock(ttlMs - 1)
  t.match(await add('early'), { status: 'duplicate', messageId })
  await advanceClock(1)
  t.match(await add('new', { onConflict: 'replace' }), { status: 'queued' })
  t.same(await taken(), ['new'])
})

test('ttlMs counts from the due time: a scheduled message holds its key for both', async (t) => {
  const { add, advanceClock, pool, take } = await openUnique(t)
  await take('q')
  const { messageId } = await add('old', {}, { ...expiring, delayMs: 60_000 })
  await advanceClock(60_000)
  await promoteDue(pool)
  await advanceClock(ttlMs - 1)
  t.match(await add('early'), { status: 'duplicate', messageId })
  await advanceClock(1)
  t.match(await add('new'), { status: 'queued' })
})

test('a window holds the key of a message that has expired', async (t) => {
  const { add, advanceClock, taken } = await openUnique(t)
  const until = { windowMs: 60_000 }
  const { messageId } = await add('old', { until }, expiring)
  await advanceClock(ttlMs + 1)
  t.match(await add('early', { until }), { status: 'duplicate', messageId })
  await advanceClock(60_000)
  t.match(await add('new', { until }), { status: 'queued' })
  t.same(await taken(), ['new'])
})

test('a replaced message expires when it would have; one that is scheduled takes the new ttlMs', async (t) => {
  const { add, advanceClock, pool, take, taken } = await openUnique(t)
  await take('q')
  await add('old', {}, expiring)
  const later = { options: { ttlMs: 1_000_000 } }
  t.match(await add('new', { onConflict: 'replace' }, later), { status: 'replaced' })
  await advanceClock(ttlMs)
  t.same(await taken(), [])
  await add('old', {}, { ...expiring, delayMs: 1_000 })
  const replaced = await add('new', { onConflict: 'replace' }, { ...later, delayMs: 2_000 })
  t.match(replaced, { status: 'replaced' })
  await advanceClock(2_000 + ttlMs)
  await promoteDue(pool)
  t.same(payloads(await take('q')), ['new'])
})
