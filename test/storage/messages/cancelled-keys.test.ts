// A cancelled message keeps its dedupe key until the window ends: an attempt of its push that comes late is a
// duplicate. Its unique key is free at once.
import {
  cancelMessage,
  deleteQueue,
  enqueue,
  messageById,
  promoteDue,
  purge,
  push,
} from '@rouse/storage'
import { type Test, test } from 'tap'
import { newId } from '../support/new-id.ts'
import { message, openStorage, payloads, start } from '../support/storage.ts'

const windowMs = 60_000

async function opened(t: Test) {
  const storage = await openStorage(t)
  const { freezeClock, pool, set, take } = storage
  await freezeClock(start)
  await set('q', { dedupWindowSeconds: windowMs / 1_000 })
  const add = async (payload: unknown, more: object = {}) => {
    const one = message('q', 'p', payload, { id: newId(), transactionId: 'key', ...more })
    const [pushed] = (await push(pool, [one])).items
    return { status: pushed?.status, messageId: pushed?.messageId as string }
  }
  const came = async () => payloads(await take('q', { batch: 10, autoAck: true }))
  return { ...storage, add, came, cancel: (id: string) => cancelMessage(pool, id) }
}

const delays = { 'in the log': undefined, scheduled: 5_000 }

for (const [where, delayMs] of Object.entries(delays)) {
  test(`a message that is cancelled ${where} keeps its dedupe key until the window ends`, async (t) => {
    const { add, advanceClock, came, cancel } = await opened(t)
    const first = await add(1, { delayMs })
    t.match(await cancel(first.messageId), { outcome: 'cancelled' })
    const repeat = { status: 'duplicate', messageId: first.messageId }
    t.same(await add(2), repeat)
    t.same(await add(2, { delayMs: 1_000 }), repeat, 'also if the repeat is delayed')
    await advanceClock(windowMs - 1)
    t.same(await add(2), repeat)
    t.same(await came(), [])
    await advanceClock(1)
    t.match(await add(3), { status: 'queued' })
    t.same(await came(), [3])
  })

  test(`a purge frees the dedupe key of a message that was cancelled ${where}`, async (t) => {
    const { add, came, cancel, pool, rows } = await opened(t)
    const first = await add(1, { delayMs })
    await cancel(first.messageId)
    await purge(pool, 'q')
    t.equal(await messageById(pool, first.messageId), undefined)
    t.same(await rows('select from rouse.cancelled'), [])
    t.match(await add(2), { status: 'queued' })
    t.same(await came(), [2])
  })

  test(`a deleted queue forgets the dedupe key of a message that was cancelled ${where}`, async (t) => {
    const { add, came, cancel, pool, rows, set } = await opened(t)
    const first = await add(1, { delayMs })
    await cancel(first.messageId)
    await deleteQueue(pool, 'q')
    t.same(await rows('select from rouse.cancelled'), [])
    await set('q', { dedupWindowSeconds: windowMs / 1_000 })
    t.match(await add(2), { status: 'queued' })
    t.same(await came(), [2])
  })

  test(`an encrypted message that is cancelled ${where} keeps its dedupe key`, async (t) => {
    const { add, came, cancel, set } = await opened(t)
    await set('q', { encryptionEnabled: true })
    const first = await add(1, { delayMs, payload: 'enc1:a' })
    t.match(await cancel(first.messageId), { outcome: 'cancelled' })
    const repeat = await add(1, { payload: 'enc1:b' })
    t.same(repeat, { status: 'duplicate', messageId: first.messageId })
    t.same(await came(), [])
  })

  test(`a cancel ${where} frees the unique key, not the dedupe key beside it`, async (t) => {
    const { add, cancel } = await opened(t)
    const options = { unique: { key: 'u' } }
    const first = await add(1, { delayMs, options })
    await cancel(first.messageId)
    t.same(await add(1, { options }), { status: 'duplicate', messageId: first.messageId })
    t.match(await add(2, { options, transactionId: 'other' }), { status: 'queued' })
  })
}

test('a push that waits while its repeat is cancelled is a duplicate of the repeat', async (t) => {
  const { add, armBarrier, came, cancel, waiting } = await opened(t)
  const repeat = await add('repeat')
  const cancelling = await armBarrier('cancel-written')
  const cancelled = cancel(repeat.messageId)
  await cancelling.reached()
  const late = add('first attempt')
  await waiting()
  await cancelling.release()
  t.match(await cancelled, { outcome: 'cancelled' })
  t.same(await late, { status: 'duplicate', messageId: repeat.messageId })
  t.same(await came(), [])
})

test('a push beside the cancel of its scheduled repeat is a duplicate of the repeat', async (t) => {
  const { add, advanceClock, armBarrier, came, cancel, pool } = await opened(t)
  const repeat = await add('repeat', { delayMs: 1_000 })
  const cancelling = await armBarrier('cancel-scheduled-locked')
  const cancelled = cancel(repeat.messageId)
  await cancelling.reached()
  const expected = { status: 'duplicate', messageId: repeat.messageId }
  t.same(await add('first attempt', { delayMs: 1_000 }), expected)
  await cancelling.release()
  t.match(await cancelled, { outcome: 'cancelled' })
  t.same(await add('first attempt', { delayMs: 1_000 }), expected)
  await advanceClock(1_000)
  await promoteDue(pool)
  t.same(await came(), [])
})

test('rouse.cancel in a transaction keeps the key of a scheduled push', async (t) => {
  const { add, begin, came, rows } = await opened(t)
  const first = await add(1, { delayMs: 5_000 })
  const user = await begin()
  t.same((await user.query('select rouse.cancel($1)', [first.messageId])).rows, [{ cancel: true }])
  const repeat = { status: 'duplicate', messageId: first.messageId }
  t.same(await add(2), repeat, 'the push does not wait for the transaction')
  await user.query('commit')
  t.same(await add(2), repeat)
  t.same(await rows('select from rouse.scheduled'), [])
  t.same(await came(), [])
})

test('the key of a cancelled message from SQL was not checked yet, and stays unused', async (t) => {
  const { add, cancel, pool } = await opened(t)
  const enqueued = {
    queue: 'q',
    partition: 'p',
    payload: '1',
    transactionId: 'key',
    delayMs: 5_000,
  }
  t.match(await cancel(await enqueue(pool, enqueued)), { outcome: 'cancelled' })
  t.match(await add(2), { status: 'queued' })
})

test('a message from SQL that falls due after a cancelled one with its key is dropped', async (t) => {
  const { add, advanceClock, came, cancel, pool } = await opened(t)
  await cancel((await add(1)).messageId)
  await enqueue(pool, { queue: 'q', partition: 'p', payload: '2', transactionId: 'key' })
  await advanceClock(1_000)
  await promoteDue(pool)
  t.same(await came(), [])
})
