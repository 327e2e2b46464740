// Unique keys: at most one message at a time has a key. What holds a key, and what frees it.
import {
  ack,
  cancelMessage,
  promoteDue,
  purge,
  redrive,
  release,
  runNow,
  seek,
  uniqueOf,
} from '@rouse/storage'
import { test } from 'tap'
import { retainRound } from '../support/retain-round.ts'
import { finish, item, message, payloads, refusal } from '../support/storage.ts'
import { keyed, openUnique, type UniqueStorage } from '../support/unique.ts'

test('a message whose key another one has is a duplicate of it, until that one is completed', async (t) => {
  const { add, lease, pool } = await openUnique(t)
  const first = await add(1)
  t.match(first, { status: 'queued' })
  t.match(await add(2), { status: 'duplicate', messageId: first.messageId })
  t.match(await add(3, { key: 'other' }), { status: 'queued' })
  const held = await lease('q')
  t.same(payloads(held), [1])
  t.match(await add(4), { status: 'duplicate', messageId: first.messageId })
  t.match(await uniqueOf(pool, first.messageId), {
    key: 'k',
    scope: 'queue',
    until: 'completed',
    held: true,
  })
  await finish(pool, held)
  t.match(await uniqueOf(pool, first.messageId), { key: 'k', held: false })
  const second = await add(5)
  t.match(second, { status: 'queued' })
  t.match(await add(6), { status: 'duplicate', messageId: second.messageId })
  t.equal(await uniqueOf(pool, first.messageId), undefined, 'another one has the key')
  t.same(payloads(await lease('q', { batch: 9 })), [3, 5])
})

test('the scope of a key is the queue or a partition; all messages without one count as one', async (t) => {
  const { add } = await openUnique(t)
  const a = await add(1, {}, { partition: 'a' })
  t.match(await add(2, {}, { partition: 'b' }), { status: 'duplicate', messageId: a.messageId })
  const narrow = { scope: 'partition' } as const
  const inA = await add(3, narrow, { partition: 'a' })
  t.match(inA, { status: 'queued' }, 'another scope')
  t.match(await add(4, narrow, { partition: 'b' }), { status: 'queued' })
  t.match(await add(5, narrow, { partition: 'a' }), {
    status: 'duplicate',
    messageId: inA.messageId,
  })
  const independent = await add(6, narrow)
  t.match(independent, { status: 'queued' })
  t.match(await add(7, narrow, { priority: 3 }), {
    status: 'duplicate',
    messageId: independent.messageId,
  })
})

test('a unique key and an equal dedupe key are different keys, and a repeat is a duplicate of its first', async (t) => {
  const { add, lease, pool } = await openUnique(t)
  const rest = { partition: 'p', transactionId: 'k' }
  const first = await add(1, { scope: 'partition' }, rest)
  t.match(first, { status: 'queued' })
  await finish(pool, await lease('q'))
  t.match(await add(1, { scope: 'partition' }, rest), {
    status: 'duplicate',
    messageId: first.messageId,
  })
  const second = await add(2, {}, { partition: 'p', transactionId: 'other' })
  t.match(second, { status: 'queued' })
  const third = { partition: 'p', transactionId: 'third' }
  t.match(await add(3, {}, third), { status: 'duplicate', messageId: second.messageId })
  await finish(pool, await lease('q'))
  t.match(await add(3, {}, third), { status: 'queued' }, 'its dedupe key was not used up')
})

const states: Record<string, (storage: UniqueStorage, id: string) => Promise<unknown>> = {
  'a dead letter': async ({ lease, pool }) => ack(pool, [item(await lease('q'), 0, 'dlq')]),
  'one that was moved to another queue': async ({ lease, pool, set }) => {
    await set('q', { deadLetterTo: 'other' })
    await ack(pool, [item(await lease('q'), 0, 'dlq')])
  },
  'a cancelled message': async ({ pool }, id) => cancelMessage(pool, id),
  'a purged message': async ({ pool }) => purge(pool, 'q'),
  'a purged message that was leased': async ({ lease, pool }) => {
    await lease('q')
    await purge(pool, 'q')
  },
  'a message older than the ttl of its queue': async ({ advanceClock, set }) => {
    await set('q', { ttl: 60 })
    await advanceClock(60_001)
  },
  'a message that retention removed': async ({ advanceClock, lease, pool }) => {
    await finish(pool, await lease('q'))
    await advanceClock(2 * 86_400_000)
    await retainRound(pool)
  },
}
for (const [what, end] of Object.entries(states)) {
  test(`${what} releases its key`, async (t) => {
    const storage = await openUnique(t)
    const { add, pool, take } = storage
    await take('q')
    const { messageId } = await add(1)
    t.match(await add(2), { status: 'duplicate', messageId })
    await end(storage, messageId)
    const next = await add(3)
    t.match(next, { status: 'queued' })
    t.match(await uniqueOf(pool, next.messageId), { held: true })
  })
}

test('a message that fails or is released keeps its key', async (t) => {
  const { add, lease, pool } = await openUnique(t, { retryBackoffMs: [60_000] })
  const { messageId } = await add(1)
  await release(pool, [(await lease('q')).leaseId])
  t.match(await add(2), { status: 'duplicate', messageId })
  await ack(pool, [item(await lease('q'), 0, 'failed')])
  t.match(await add(3), { status: 'duplicate', messageId })
})

test('a seek back and a redrive open a message again, if its key still names it', async (t) => {
  const { add, lease, pool } = await openUnique(t)
  const first = await add(1)
  await finish(pool, await lease('q'))
  await seek(pool, { queue: 'q', group: 'g', to: new Date(0) })
  t.match(await add(2), { status: 'duplicate', messageId: first.messageId })
  await ack(pool, [item(await lease('q'), 0, 'dlq')])
  await redrive(pool, { queue: 'q', group: 'g' })
  t.match(await add(3), { status: 'duplicate', messageId: first.messageId })
  await ack(pool, [item(await lease('q'), 0, 'dlq')])
  const second = await add(4)
  t.match(second, { status: 'queued' })
  await redrive(pool, { queue: 'q', group: 'g' })
  t.match(await add(5), { status: 'duplicate', messageId: second.messageId })
})

test('every group that is in use holds a key; one that was left does not', async (t) => {
  const { add, advanceClock, lease, pool, take, taken } = await openUnique(t)
  for (const group of ['g', 'other', 'stray']) await take('q', { group })
  await add(1)
  await finish(pool, await lease('q'))
  t.match(await add(2), { status: 'duplicate' }, 'the others have not had it')
  await advanceClock(3_600_001)
  await finish(pool, await lease('q', { group: 'other' }))
  await take('q')
  const second = await add(3)
  t.match(second, { status: 'queued' }, 'the third has not asked for messages for an hour')
  t.same(await taken('stray'), [1, 3], 'it gets them nevertheless')
  t.match(await add(4), { status: 'duplicate', messageId: second.messageId })
})

test('if all consumers are down, no key is released', async (t) => {
  const { add, advanceClock, take } = await openUnique(t)
  for (const group of ['g', 'other']) await take('q', { group })
  const { messageId } = await add(1)
  await advanceClock(10 * 3_600_000)
  t.match(await add(2), { status: 'duplicate', messageId })
})

test('a window holds a key for its time, also after completion, but not after a cancel or a purge', async (t) => {
  const { add, advanceClock, lease, pool } = await openUnique(t)
  const until = { windowMs: 1_000 }
  const first = await add(1, { until })
  await finish(pool, await lease('q'))
  await advanceClock(999)
  t.match(await add(2), { status: 'duplicate', messageId: first.messageId })
  t.match(await uniqueOf(pool, first.messageId), { until, held: true })
  await advanceClock(1)
  const second = await add(3, { until })
  t.match(second, { status: 'queued' })
  await cancelMessage(pool, second.messageId)
  t.match(await add(4, { until }), { status: 'queued' })
  await purge(pool, 'q')
  t.match(await add(5, { until }), { status: 'queued' })
})

test('replace changes a message that waits, and stores a new one if it has started', async (t) => {
  const { add, lease, pool, taken } = await openUnique(t)
  const replace = { onConflict: 'replace' } as const
  const first = await add(1, replace, { headers: '{"a":1}' })
  t.match(first, { status: 'queued' })
  t.match(await add(2, replace, { headers: '{"b":2}' }), {
    status: 'replaced',
    messageId: first.messageId,
  })
  const held = await lease('q')
  t.match(held.messages, [{ payload: '2', headers: '{"b":2}' }])
  const second = await add(3, replace)
  t.match(second, { status: 'queued' })
  t.match(await add(4, replace), { status: 'replaced', messageId: second.messageId })
  await ack(pool, [item(held, 0, 'failed')])
  t.match(await add(5), { status: 'duplicate', messageId: second.messageId })
  t.same([...(await taken()), ...(await taken())], [2, 4])
})

test('replace stores a new message if one group has had the old one', async (t) => {
  const { add, lease, pool, take, taken } = await openUnique(t)
  for (const group of ['g', 'other']) await take('q', { group })
  await add(1)
  await finish(pool, await lease('q'))
  t.match(await add(2, { onConflict: 'replace' }), { status: 'queued' })
  t.same(await taken('other'), [1, 2])
})

test('replace of a scheduled message sets its due time and options', async (t) => {
  const { add, advanceClock, pool, rows, take, taken } = await openUnique(t)
  await take('q')
  const replace = { onConflict: 'replace' } as const
  const first = await add(1, replace, { delayMs: 1_000 })
  t.match(first, { status: 'scheduled' })
  const { messageId } = first
  const later = { delayMs: 5_000, options: { retryLimit: 7 } }
  t.match(await add(2, replace, later), { status: 'replaced', messageId })
  await advanceClock(4_999)
  await promoteDue(pool)
  t.same(await taken(), [])
  await advanceClock(1)
  await promoteDue(pool)
  t.match(await add(3), { status: 'duplicate', messageId }, 'it keeps the key in the log')
  t.match(await rows('select retry_limit from rouse.message_options'), [{ retry_limit: 7 }])
  t.match(await add(4, replace, { delayMs: 9_000 }), { status: 'replaced', messageId })
  t.same(await taken(), [4], 'in the log only the content changes')
})

test('run-now and cancel of a scheduled message: the first keeps its key, the second frees it', async (t) => {
  const { add, pool, take, taken } = await openUnique(t)
  await take('q')
  const first = await add(1, {}, { delayMs: 60_000 })
  t.match(await add(2), { status: 'duplicate', messageId: first.messageId })
  await runNow(pool, first.messageId)
  t.match(await add(3), { status: 'duplicate', messageId: first.messageId })
  await promoteDue(pool)
  t.match(await uniqueOf(pool, first.messageId), { key: 'k', held: true })
  t.match(await add(4), { status: 'duplicate', messageId: first.messageId })
  t.match(await cancelMessage(pool, first.messageId), { outcome: 'cancelled' })
  const second = await add(5, {}, { delayMs: 60_000 })
  t.match(second, { status: 'scheduled' })
  await cancelMessage(pool, second.messageId)
  t.match(await add(6), { status: 'queued' })
  t.same(await taken(), [6])
})

test('reject refuses the call, and stores nothing of it', async (t) => {
  const { add, pushAll, rows, taken } = await openUnique(t)
  const first = await add(1)
  const call = pushAll(
    message('q', 'p', 'plain'),
    keyed(2, { key: 'new' }),
    keyed(3, { onConflict: 'reject' }),
  )
  t.same(await refusal(call), {
    state: 'RS409',
    detail: { code: 'unique_conflict', item: 3, field: 'unique', key: 'k', id: first.messageId },
  })
  t.same(await taken(), [1])
  t.match(await rows('select key from rouse.unique_keys'), [{ key: 'k' }])
  t.match(await add(4, { key: 'new', onConflict: 'reject' }), { status: 'queued' })
})

test('several equal keys in one call: the first is stored, the last that replaces counts', async (t) => {
  const { pushAll, taken } = await openUnique(t)
  const replace = { onConflict: 'replace' } as const
  const pushed = await pushAll(
    keyed('a', {}, { partition: 'x' }),
    keyed('b', {}, { partition: 'y' }),
    keyed('c', replace, { partition: 'y' }),
    keyed('d', replace, { partition: 'x' }),
    keyed('e', {}, { partition: 'y' }),
    keyed('other', { key: 'other' }, { partition: 'y' }),
  )
  const { messageId } = pushed[0] as { messageId: string }
  t.match(pushed, [
    { status: 'queued' },
    { status: 'duplicate', messageId },
    { status: 'replaced', messageId },
    { status: 'replaced', messageId },
    { status: 'duplicate', messageId },
    { status: 'queued', seq: 1 },
  ])
  t.same(new Set(await taken()), new Set(['d', 'other']))
  const again = await pushAll(keyed('f', replace), keyed('g'), keyed('h', replace))
  t.match(
    again.map(({ status }) => status),
    ['queued', 'duplicate', 'replaced'],
    'what was delivered is not changed',
  )
  t.same(await taken(), ['h'])
  const twice = keyed('i', { key: 'last', onConflict: 'reject' })
  t.match(await refusal(pushAll(twice, { ...twice, id: keyed(0).id })), {
    detail: { code: 'unique_conflict', item: 2 },
  })
})

test('a repeat of a message that is itself a duplicate names the holder of the key', async (t) => {
  const { add, pushAll } = await openUnique(t)
  const { messageId } = await add(1, {}, { partition: 'p' })
  const again = { partition: 'p', transactionId: 'twice' }
  t.match(await pushAll(keyed(2, {}, again), keyed(2, {}, again)), [
    { status: 'duplicate', messageId },
    { status: 'duplicate', messageId },
  ])
})

test('a call that is repeated with the same ids stores nothing again', async (t) => {
  const { pushAll, taken } = await openUnique(t)
  const items = [keyed(1), keyed(2, { key: 'later' }, { delayMs: 1_000 })]
  const first = await pushAll(...items)
  t.match(
    await pushAll(...items),
    first.map(({ messageId }) => ({ status: 'duplicate', messageId })),
  )
  t.same(await taken(), [1])
})

test('a queue with a size limit counts neither duplicates nor replaced messages', async (t) => {
  const { add } = await openUnique(t, { maxSize: 1 })
  t.match(await add(1), { status: 'queued' })
  t.match(await add(2), { status: 'duplicate' })
  t.match(await add(3, { onConflict: 'replace' }), { status: 'replaced' })
  t.match(await refusal(add(4, { key: 'other' })), { state: 'RS429' })
})

test('an encrypted queue has unique keys, but nothing is replaced there', async (t) => {
  const { add } = await openUnique(t, { encryptionEnabled: true })
  const sealed = { payload: 'enc1:a', id: '01890000-0000-7000-8000-000000000001' }
  const first = await add(0, {}, sealed)
  t.match(first, { status: 'queued' })
  t.match(await add(0, {}, { payload: 'enc1:b' }), {
    status: 'duplicate',
    messageId: first.messageId,
  })
  const replacing = add(0, { onConflict: 'replace' }, { payload: 'enc1:b' })
  t.same((await refusal(replacing)).detail.field, 'unique.onConflict')
})

test('retention removes keys that no message will hold again, and no others', async (t) => {
  const { add, advanceClock, lease, pool, pushAll, rows, take } = await openUnique(t)
  await take('q')
  await pushAll(
    keyed(1, { key: 'completed' }),
    keyed(2, { key: 'window', until: { windowMs: 5_000 } }),
    keyed(3, { key: 'cancelled' }),
    keyed(4, { key: 'waits' }),
    keyed(5, { key: 'scheduled' }, { delayMs: 3 * 86_400_000 }),
  )
  const cancelled = await add(6, { key: 'cancelled' })
  await finish(pool, await lease('q', { batch: 2 }))
  await cancelMessage(pool, cancelled.messageId)
  const keys = async () =>
    (await rows<{ key: string }>('select key from rouse.unique_keys')).map(({ key }) => key)
  await advanceClock(5_000)
  await retainRound(pool)
  t.same(new Set(await keys()), new Set(['completed', 'waits', 'scheduled']))
  await advanceClock(2 * 86_400_000)
  await retainRound(pool)
  t.same(new Set(await keys()), new Set(['waits', 'scheduled']))
  t.equal((await refusal(add(7, { key: 'waits', onConflict: 'reject' }))).state, 'RS409')
  await rows(`select rouse.delete_queue('q')`)
  await retainRound(pool)
  t.same(await keys(), [])
})
