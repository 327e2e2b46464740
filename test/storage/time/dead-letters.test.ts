// Dead letters: listed, filtered, and redelivered to their own group and position.
import {
  ack,
  deadLetters,
  promoteDue,
  purge,
  reapExpired,
  redrive,
  release,
  retain,
  seek,
} from '@rouse/storage'
import { test } from 'tap'
import {
  finish,
  item,
  openStorage,
  payloads,
  refusal,
  type Storage,
  seqs,
  start,
} from '../support/storage.ts'

/** Makes a dead letter of the next message of a group in partition p. */
async function bury({ lease, pool }: Storage, errorCode: string, group = 'g'): Promise<void> {
  const held = await lease('q', { group, partition: 'p' })
  await ack(pool, [item(held, 0, 'dlq', { errorCode, errorMessage: `because ${errorCode}` })])
}

async function letterIds({ pool }: Storage): Promise<string[]> {
  return (await deadLetters(pool)).letters.map(({ id }) => id)
}

test('dead letters are listed newest first, with all their properties', async (t) => {
  const storage = await openStorage(t)
  const { freezeClock, pool, send } = storage
  await freezeClock(start)
  await send('q', 'p', [1, 2, 3])
  for (const code of ['E1', 'E2', 'E3']) await bury(storage, code)
  const { letters, total } = await deadLetters(pool, { limit: 2 })
  t.equal(total, 3)
  t.match(letters, [
    {
      payload: '3',
      queue: 'q',
      group: 'g',
      partition: 'p',
      seq: 3,
      attempts: 1,
      errorCode: 'E3',
      errorMessage: 'because E3',
      failedAt: new Date(start),
    },
    { payload: '2' },
  ])
  t.match(await deadLetters(pool, { offset: 2 }), { letters: [{ payload: '1' }], total: 3 })
})

test('dead letters are listed by queue and group', async (t) => {
  const storage = await openStorage(t)
  await storage.send('q', 'p', [1])
  await bury(storage, 'E', 'a')
  await bury(storage, 'E', 'b')
  t.match(await deadLetters(storage.pool, { group: 'a' }), { total: 1, letters: [{ group: 'a' }] })
  t.match(await deadLetters(storage.pool, { queue: 'q' }), { total: 2 })
  t.match(await deadLetters(storage.pool, { queue: 'other' }), { total: 0, letters: [] })
})

test('a redrive delivers a letter to its own group only, first in its lane, with attempts counted from one', async (t) => {
  const storage = await openStorage(t)
  const { lease, pool, send, take } = storage
  await send('q', 'p', [1, 2])
  await bury(storage, 'E')
  t.same(payloads(await take('q', { group: 'other', batch: 9, autoAck: true })), [1, 2])
  const woken = await redrive(pool, { queue: 'q' })
  t.match(woken, [{ queue: 'q', partition: 'p', group: 'g', count: 1 }])
  const again = await lease('q', { batch: 9 })
  t.same([again.attempt, seqs(again)], [1, [1]])
  t.equal((await take('q', { group: 'other' })).status, 'empty')
  t.same(await letterIds(storage), [])
})

const day = 86_400_000

test('a redriven letter whose log row retention had removed survives being released', async (t) => {
  const storage = await openStorage(t)
  const { advanceClock, freezeClock, lease, pool, send, take } = storage
  await freezeClock(start)
  await send('q', 'p', ['precious'])
  await bury(storage, 'E')
  await advanceClock(2 * day)
  t.match(await retain(pool), { messages: 1 })
  await redrive(pool, { queue: 'q' })
  for (let round = 0; round < 3; round += 1) {
    const held = await lease('q')
    t.same([payloads(held), held.attempt], [['precious'], 1], 'released without a charge')
    await retain(pool)
    await release(pool, [held.leaseId])
    await retain(pool)
  }
  const last = await lease('q')
  t.same(payloads(last), ['precious'])
  await finish(pool, last)
  t.equal((await take('q')).status, 'empty')
})

test('a letter redriven after a purge survives being released', async (t) => {
  const storage = await openStorage(t)
  const { lease, pool, send, take } = storage
  await send('q', 'p', ['precious', 'other'])
  await bury(storage, 'E')
  await purge(pool, 'q')
  await redrive(pool, { queue: 'q' })
  const held = await lease('q')
  await release(pool, [held.leaseId])
  await send('q', 'p', ['fresh'])
  const again = await lease('q', { batch: 9 })
  t.same(payloads(again), ['precious'], 'alone, and first in its lane')
  await finish(pool, again)
  t.same(payloads(await take('q', { batch: 9 })), ['fresh'])
})

test('a redriven letter older than the ttl of its queue survives being released', async (t) => {
  const storage = await openStorage(t)
  const { advanceClock, freezeClock, lease, pool, send, set } = storage
  await freezeClock(start)
  await set('q', { ttl: 60 })
  await send('q', 'p', ['precious'])
  await bury(storage, 'E')
  await advanceClock(600_000)
  await redrive(pool, { queue: 'q' })
  const held = await lease('q')
  await release(pool, [held.leaseId])
  t.same(payloads(await lease('q')), ['precious'])
})

test('a redrive may select by error code, by id and by number', async (t) => {
  const storage = await openStorage(t)
  const { pool, send, take } = storage
  await send('q', 'p', [1, 2, 3, 4])
  for (const code of ['a', 'b', 'a', 'b']) await bury(storage, code)
  const [, third] = await letterIds(storage)
  t.match(await redrive(pool, { queue: 'q', errorCode: 'a', limit: 1 }), [{ count: 1 }])
  t.match(await redrive(pool, { queue: 'q', ids: [third as string], errorCode: 'b' }), [])
  t.match(await redrive(pool, { queue: 'q', ids: [third as string] }), [{ count: 1 }])
  t.match(await redrive(pool, { queue: 'q', group: 'unknown' }), [])
  t.same(payloads(await take('q', { autoAck: true })), [1])
  t.same(payloads(await take('q', { autoAck: true })), [3])
  t.equal((await letterIds(storage)).length, 2)
})

test('a dry run counts and moves nothing', async (t) => {
  const storage = await openStorage(t)
  const { pool, send, take } = storage
  await send('q', 'p', [1, 2])
  for (const code of ['a', 'b']) await bury(storage, code)
  const said = await redrive(pool, { queue: 'q', dryRun: true })
  t.match(said, [{ queue: 'q', partition: 'p', group: 'g', count: 2 }])
  t.equal((await take('q')).status, 'empty')
  t.equal((await letterIds(storage)).length, 2)
})

test('two redrives at once move each letter once', async (t) => {
  const storage = await openStorage(t)
  const { armBarrier, pool, send, waiting } = storage
  await send('q', 'p', [1, 2])
  for (const code of ['a', 'b']) await bury(storage, code)
  const moving = await armBarrier('redrive-locked')
  const first = redrive(pool, { queue: 'q' })
  await moving.reached()
  const second = redrive(pool, { queue: 'q' })
  await waiting()
  await moving.release()
  t.match(await first, [{ count: 2 }])
  t.same(await second, [])
})

test('a redrive of a queue that does not exist is refused', async (t) => {
  const { pool } = await openStorage(t)
  t.match(await refusal(redrive(pool, { queue: 'none' })), { state: 'RS404' })
})

for (const how of ['failed', 'expired', 'released'] as const) {
  test(`a message redriven while it is leased, and then ${how}, is redelivered once`, async (t) => {
    const storage = await openStorage(t)
    const { advanceClock, freezeClock, lease, pool, send, set, take } = storage
    await freezeClock(start)
    await set('q', { retryBackoffMs: [0] })
    await send('q', 'p', [1, 2])
    await bury(storage, 'E')
    await seek(pool, { queue: 'q', group: 'g', to: new Date(0) })
    const held = await lease('q', { leaseMs: 1_000, batch: 1 })
    await redrive(pool, { queue: 'q' })
    if (how === 'failed') await ack(pool, [item(held, 0, 'failed')])
    else if (how === 'released') await release(pool, [held.leaseId])
    else await advanceClock(5_000)
    await reapExpired(pool)
    await promoteDue(pool)
    const came: unknown[] = []
    for (let result = await take('q', { batch: 9 }); result.leases.length > 0; ) {
      came.push(...payloads(result))
      for (const again of result.leases) await finish(pool, again)
      result = await take('q', { batch: 9 })
    }
    t.same(came, [1, 2])
  })
}

test('a message redriven while it is leased without order is not leased twice', async (t) => {
  const { lease, pool, send, set, take } = await openStorage(t)
  await set('q', { ordering: 'none' })
  await send('q', 'p', [1])
  const { leaseId } = await lease('q')
  await ack(pool, [{ leaseId, status: 'dlq' }])
  await seek(pool, { queue: 'q', group: 'g', to: new Date(0) })
  const held = await lease('q')
  t.same(payloads({ leases: [held] }), [1])
  await redrive(pool, { queue: 'q' })
  t.equal((await take('q')).status, 'empty', 'the delivery goes on')
  await finish(pool, held)
  t.equal((await take('q')).status, 'empty', 'and was the only one')
})

for (const ordering of ['partition', 'none']) {
  test(`a letter redriven after a seek back is delivered once (ordering ${ordering})`, async (t) => {
    const { freezeClock, lease, pool, rows, send, set, take } = await openStorage(t)
    await freezeClock(start)
    await set('q', { ordering })
    await send('q', 'p', [1, 2])
    const { leaseId } = await lease('q')
    await ack(pool, [{ leaseId, status: 'dlq' }])
    await seek(pool, { queue: 'q', group: 'g', to: new Date(start) })
    await redrive(pool, { queue: 'q' })
    t.same(await rows('select from rouse.dead_letters'), [])
    t.same(payloads(await take('q', { batch: 9, autoAck: true })), [1, 2])
    t.equal((await take('q', { batch: 9 })).status, 'empty')
  })
}

test('a letter redriven after a seek back is delivered even if its message is too old', async (t) => {
  const { freezeClock, lease, pool, send, set, take } = await openStorage(t)
  await freezeClock(start)
  await set('q', { ttl: 20 })
  await send('q', 'p', [1, 2])
  const { leaseId } = await lease('q')
  await ack(pool, [{ leaseId, status: 'dlq' }])
  await freezeClock(start + 30_000)
  await seek(pool, { queue: 'q', group: 'g', to: new Date(start) })
  await send('q', 'p', [3])
  await redrive(pool, { queue: 'q', limit: 1 })
  t.same(payloads(await take('q', { batch: 9, autoAck: true })), [1])
  t.same(payloads(await take('q', { batch: 9, autoAck: true })), [3])
  t.equal((await take('q', { batch: 9 })).status, 'empty')
})
