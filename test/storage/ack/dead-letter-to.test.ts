// deadLetterTo: messages that are given up are moved to another queue, in the same transaction, each exactly
// once.
import {
  ack,
  configure,
  deadLetters,
  type Lease,
  patchQueue,
  promoteDue,
  push,
  reapExpired,
  transaction,
} from '@rouse/storage'
import { test } from 'tap'
import { untilNoRetry } from '../support/load.ts'
import {
  item,
  message,
  openStorage,
  payloads,
  refusal,
  type Storage,
  start,
} from '../support/storage.ts'

interface Letter {
  readonly id: string
  readonly hops: number
  readonly attempts: number
}

/** Fails a message for the last time, and pops what became of it. */
async function fail(storage: Storage, queue: string, target: string): Promise<Lease> {
  await ack(storage.pool, [item(await storage.lease(queue), 0, 'dlq', { errorCode: 'E1' })])
  await promoteDue(storage.pool)
  return storage.lease(target)
}

function headersOf({ messages: [first] }: Lease): Record<string, Letter> {
  return JSON.parse(first?.headers ?? 'null')
}

const letterCount = 'select count(*)::integer as n from rouse.dead_letters'

test('a message at its retry limit is in the other queue, once, with a header about its failure', async (t) => {
  const storage = await openStorage(t)
  const { freezeClock, lease, pool, rows, send, set } = storage
  await freezeClock(start)
  await set('q', { deadLetterTo: 'dead', retryLimit: 0 })
  await send('q', 'p', [1, 2])
  const held = await lease('q', { batch: 2 })
  const fault = { errorCode: 'E1', errorMessage: 'card declined' }
  const { deadLettered } = await ack(pool, [item(held, 0, 'failed', fault), item(held, 1)])
  t.same(deadLettered, [0])
  t.match(await promoteDue(pool), [{ queue: 'dead', partition: 'p', count: 1 }])
  const came = await lease('dead')
  t.same(payloads(came), [1])
  t.match(came, { partition: 'p', attempt: 1, messages: [{ transactionId: null }] })
  t.same(headersOf(came), {
    'rouse-dead-letter': {
      id: held.messages[0]?.id,
      queue: 'q',
      partition: 'p',
      consumerGroup: 'g',
      attempts: 1,
      errorCode: 'E1',
      error: 'card declined',
      failedAt: new Date(start).toISOString(),
      hops: 1,
    },
  })
  t.not(came.messages[0]?.id, held.messages[0]?.id, 'it is a new message')
  t.same(await rows(letterCount), [{ n: 0 }])
  t.same(await rows('select seq::integer, outcome, final from rouse.attempts'), [
    { seq: 1, outcome: 'failed', final: 'moved' },
  ])
})

test('attempts say whether a message was dropped, kept as a dead letter or will be tried again', async (t) => {
  const { lease, pool, rows, send, set } = await openStorage(t)
  await set('q', { retryLimit: 0, deadLetterQueue: false })
  await send('q', 'p', [1])
  await ack(pool, [item(await lease('q'), 0, 'failed')])
  await set('q', { deadLetterQueue: true })
  await send('q', 'p', [2])
  await ack(pool, [item(await lease('q'), 0, 'failed')])
  await set('q', { retryLimit: 1 })
  await send('q', 'p', [3])
  await ack(pool, [item(await lease('q'), 0, 'failed')])
  t.same(
    await rows('select final from rouse.attempts order by seq'),
    ['dropped', 'dead', null].map((final) => ({ final })),
  )
})

test('expired leases and explicit dlq acks move messages, too, also with deadLetterQueue false', async (t) => {
  const storage = await openStorage(t)
  const { advanceClock, freezeClock, lease, pool, send, set, take } = storage
  await freezeClock(start)
  await set('q', { deadLetterTo: 'dead', retryLimit: 0, deadLetterQueue: false })
  await send('q', 'p', ['dlq', 'expires', 'fails'])
  await ack(pool, [item(await lease('q'), 0, 'dlq')])
  await lease('q', { leaseMs: 1_000 })
  await advanceClock(1_000)
  await reapExpired(pool)
  await ack(pool, [item(await lease('q'), 0, 'failed')])
  await promoteDue(pool)
  const { leases } = await take('dead', { batch: 9 })
  t.same(payloads({ leases }), ['dlq', 'expires', 'fails'])
})

test('each group that gives up a message moves its own copy', async (t) => {
  const { lease, pool, send, set, take } = await openStorage(t)
  await set('q', { deadLetterTo: 'dead' })
  await send('q', 'p', [1])
  for (const group of ['g', '__QUEUE_MODE__']) {
    await ack(pool, [item(await lease('q', { group }), 0, 'dlq')])
  }
  await promoteDue(pool)
  const { leases } = await take('dead', { batch: 9 })
  t.same(
    (leases[0]?.messages ?? []).map(
      ({ headers }) => JSON.parse(headers ?? '')['rouse-dead-letter'].consumerGroup,
    ),
    ['g', 'default'],
  )
})

test('headers, trace and payload of the message are kept as they were written', async (t) => {
  const storage = await openStorage(t)
  const { pool, set, take } = storage
  await set('q', { deadLetterTo: 'dead' })
  const odd = { headers: '{ "n": 12345678901234567890, "x": {"a" : 1.0}}', traceId: 'trace' }
  await push(pool, [message('q', 'p', { v: 1 }, odd)])
  const came = await fail(storage, 'q', 'dead')
  t.match(came.messages, [{ traceId: 'trace', payload: '{"v":1}' }])
  t.match(
    came.messages[0]?.headers,
    /^\{"n":12345678901234567890,"x":\{"a" : 1\.0\},"rouse-dead-letter":\{"id":"/,
  )
  t.equal((await take('q')).status, 'empty')
})

test('a letter makes at most five hops, and is then kept as a dead letter', async (t) => {
  const storage = await openStorage(t)
  const { lease, pool, rows, send } = storage
  const queues = Array.from({ length: 7 }, (_, n) => `q${n}`)
  for (const [n, queue] of queues.entries()) {
    await configure(pool, { queue, options: { deadLetterTo: queues[n + 1] ?? null } })
  }
  await send('q0', 'p', [1])
  for (let hop = 1; hop <= 5; hop += 1) {
    const came = await fail(storage, `q${hop - 1}`, `q${hop}`)
    t.equal(headersOf(came)['rouse-dead-letter']?.hops, hop)
    await ack(pool, [{ leaseId: came.leaseId, status: 'retry' }])
  }
  await ack(pool, [item(await lease('q5'), 0, 'dlq')])
  t.same(await promoteDue(pool), [])
  const { letters } = await deadLetters(pool, { queue: 'q5' })
  t.match(letters, [{ payload: '1', queue: 'q5' }])
  t.same(await rows(letterCount), [{ n: 1 }])
})

test('a circle is refused, also a longer one; a missing target is created', async (t) => {
  const storage = await openStorage(t)
  const { pool, rows } = storage
  const to = (queue: string, deadLetterTo: string | null) =>
    configure(pool, { queue, options: { deadLetterTo } })
  const refused = { state: 'RS400', detail: { code: 'invalid_option', field: 'deadLetterTo' } }
  t.match(await refusal(to('a', 'a')), refused)
  t.same(await rows('select name from rouse.queues'), [], 'nothing was created')
  t.match((await to('a', 'b')).options, { deadLetterTo: 'b' })
  await to('b', 'c')
  t.same(await rows('select name from rouse.queues order by name'), [
    { name: 'a' },
    { name: 'b' },
    { name: 'c' },
  ])
  t.match(await refusal(to('b', 'a')), refused)
  t.match(await refusal(to('c', 'a')), refused)
  t.match(await refusal(patchQueue(pool, { queue: 'c', options: { deadLetterTo: 'a' } })), refused)
  await to('b', null)
  await to('c', 'a')
  t.match(await refusal(to('b', 'c')), refused)
  t.match(await refusal(to('a', '')), { detail: { code: 'invalid_name', field: 'deadLetterTo' } })
  t.match(await refusal(configure(pool, { queue: 'a', options: { deadLetterTo: 5 } })), refused)
})

test('an encrypted queue cannot move its dead letters, and none is moved into one', async (t) => {
  const storage = await openStorage(t)
  const { lease, pool, rows, send, set } = storage
  const both = { deadLetterTo: 'dead', encryptionEnabled: true }
  t.match(await refusal(configure(pool, { queue: 'q', options: both })), {
    detail: { code: 'invalid_option', field: 'deadLetterTo' },
  })
  await set('q', { deadLetterTo: 'dead' })
  const encrypt = configure(pool, { queue: 'q', options: { encryptionEnabled: true } })
  t.match(await refusal(encrypt), {
    detail: { code: 'invalid_option', field: 'encryptionEnabled' },
  })
  await send('q', 'p', [1, 2])
  await set('dead', { encryptionEnabled: true })
  await ack(pool, [item(await lease('q'), 0, 'dlq')])
  await set('dead', { encryptionEnabled: false })
  await rows(`update rouse.messages set payload = 'enc1...' where seq = 2`)
  await ack(pool, [item(await lease('q'), 0, 'dlq')])
  t.same(await rows('select from rouse.scheduled'), [])
  t.same(await rows(letterCount), [{ n: 2 }])
})

test('a letter for a deleted queue creates the queue again', async (t) => {
  const storage = await openStorage(t)
  const { rows, send, set } = storage
  await set('q', { deadLetterTo: 'dead' })
  await rows(`select rouse.delete_queue('dead')`)
  for (;;) {
    await rows(`select rouse.removal_step('test')`)
    const [left] = await rows<{ n: number }>('select count(*)::integer as n from rouse.removals')
    if (left?.n === 0) break
  }
  await send('q', 'p', [1])
  t.same(payloads(await fail(storage, 'q', 'dead')), [1])
})

test('an ack that dies after it moved a letter has moved none; repeated, it moves one', async (t) => {
  const storage = await openStorage(t)
  const { armBarrier, lease, pool, rows, send, set } = storage
  await set('q', { deadLetterTo: 'dead', leaseTime: 3_600 })
  await send('q', 'p', [1])
  const held = await lease('q')
  const barrier = await armBarrier('letters-moved')
  const client = await pool.connect()
  client.on('error', () => {})
  const killed = ack(client, [item(held, 0, 'dlq')]).catch((error: { code?: string }) => error.code)
  const { pids } = await barrier.reached()
  t.same(await promoteDue(pool), [], 'nothing is seen before the commit')
  await rows('select pg_terminate_backend($1, 5000)', [pids[0]])
  t.equal(await killed, '57P01')
  client.release(true)
  await barrier.release()
  t.same(await rows('select from rouse.scheduled'), [])
  t.same((await ack(pool, [item(held, 0, 'dlq')])).rejected, [])
  t.same((await ack(pool, [item(held, 0, 'dlq')])).rejected, [0], 'a second ack is refused')
  await Promise.all([promoteDue(pool), promoteDue(pool), promoteDue(pool)])
  t.same(await rows('select payload from rouse.messages where headers is not null'), [
    { payload: '1' },
  ])
})

test('a transaction that pushes to the target waits for the lane of a letter, not in a circle', async (t) => {
  const storage = await openStorage(t)
  const { armBarrier, lease, pool, send, set, take, waiting } = storage
  await set('q', { deadLetterTo: 'dead', ordering: 'none' })
  await send('q', 'p', ['letter', 'other'])
  await send('dead', 'p', ['first'])
  const [first, second] = [await lease('q'), await lease('q')]
  // The ack holds the lane and moves its letter to a partition that the transaction holds; the transaction
  // waits for the lane.
  const barrier = await armBarrier('letters-moved')
  const acked = ack(pool, [item(first, 0, 'dlq')])
  await barrier.reached()
  const request = {
    acks: [item(second, 0, 'retry' as const)],
    pushes: [message('dead', 'p', 'pushed')],
  }
  const crossed = untilNoRetry(() => transaction(pool, request))
  await waiting()
  await barrier.release()
  await acked
  await crossed
  await promoteDue(pool)
  const { leases } = await take('dead', { batch: 9 })
  t.same(payloads({ leases }), ['first', 'pushed', 'letter'])
})

test('two queues that are configured to move letters to each other at once: one is refused', async (t) => {
  const { armBarrier, pool, waiting } = await openStorage(t)
  const to = (queue: string, deadLetterTo: string) =>
    configure(pool, { queue, options: { deadLetterTo } })
  const barrier = await armBarrier('configure-locked')
  const first = to('a', 'b')
  await barrier.reached()
  const second = refusal(to('b', 'a'))
  await waiting()
  await barrier.release()
  await first
  t.match(await second, { detail: { code: 'invalid_option', field: 'deadLetterTo' } })
})

for (const [ordering, partition] of [
  ['keyed', null],
  ['partition', 'Default'],
  ['none', 'Default'],
] as const) {
  test(`an independent message moves to ${partition ?? 'no partition'} of a queue with ordering ${ordering}`, async (t) => {
    const storage = await openStorage(t)
    await storage.set('q', { deadLetterTo: 'dead', retryLimit: 0, ordering: 'keyed' })
    await storage.set('dead', { ordering })
    await push(storage.pool, [message('q', undefined, 1)])
    const moved = await fail(storage, 'q', 'dead')
    t.equal(moved.partition, partition)
    t.match(headersOf(moved), { 'rouse-dead-letter': { queue: 'q', partition: null } })
  })
}
