// The queue options that apply to failed messages: retry delays, retry limit, dead letters, order.
import { test } from 'tap'
import { optionsNode, type Popped } from '../support/queue-options.ts'

const { node, api, queueWith, pushAll, take, takeSoon, dataOf, fail, deadIn, nothingYet } =
  await optionsNode()
const { advanceClock } = node.database

test('retryLimit and retryBackoffMs: retries follow the delays, repeat the last one, and end with a dead letter', async (t) => {
  const queue = await queueWith({ retryLimit: 3, retryBackoffMs: [0, 30_000] })
  await pushAll(queue, 1)
  await fail(await take(queue))
  const second = await take(queue)
  t.match(second, [{ attempt: 2 }], 'the first retry comes at once')
  let last = second
  for (const attempt of [3, 4]) {
    await fail(last)
    await advanceClock(28_000)
    await nothingYet(t, queue, `before delivery ${attempt}`)
    await advanceClock(3_000)
    last = await takeSoon(queue)
    t.match(last, [{ attempt }])
  }
  t.equal(await deadIn(queue), 0)
  await fail(last)
  t.equal(await deadIn(queue), 1, 'dead-lettered after four deliveries')
  const once = await queueWith({ retryLimit: 0 })
  await pushAll(once, 1)
  await fail(await take(once))
  t.equal(await deadIn(once), 1)
})

test('retryDelay: a constant delay, unless retryBackoffMs is set', async (t) => {
  const queue = await queueWith({ retryDelay: 50_000 })
  await pushAll(queue, 1)
  for (const attempt of [2, 3]) {
    await fail(attempt === 2 ? await take(queue) : await takeSoon(queue))
    await advanceClock(48_000)
    await nothingYet(t, queue, `before attempt ${attempt}`)
    await advanceClock(3_000)
  }
  t.match(await takeSoon(queue), [{ attempt: 3 }])
  const both = await queueWith({ retryDelay: 50_000, retryBackoffMs: [0] })
  await pushAll(both, 1)
  await fail(await take(both))
  t.match(await take(both), [{ attempt: 2 }])
})

test('deadLetterQueue: false drops a message at its retry limit, also under the older name of the option', async (t) => {
  for (const options of [{ deadLetterQueue: false }, { dlqAfterMaxRetries: false }]) {
    const queue = await queueWith({ ...options, retryLimit: 0 })
    await pushAll(queue, 1, 2)
    const { body } = await fail(await take(queue))
    t.same(Object.keys(body[0]), ['index', 'transactionId', 'success'], 'it is not dead-lettered')
    t.equal(await deadIn(queue), 0)
    const second = await take(queue)
    t.same(dataOf(second), [2], 'the lane continues')
    t.match(await api.ack(second[0] as Popped, 'dlq'), { body: [{ success: true, dlq: true }] })
    t.equal(await deadIn(queue), 1, 'an explicit dlq still dead-letters')
  }
})

test('onFailure: hold keeps the order, skip delivers the messages behind', async (t) => {
  const hold = await queueWith({ onFailure: 'hold', retryBackoffMs: [60_000] })
  const skip = await queueWith({ onFailure: 'skip', retryBackoffMs: [60_000] })
  for (const queue of [hold, skip]) {
    await pushAll(queue, 1, 2)
    await fail(await take(queue))
  }
  await nothingYet(t, hold, 'the failed message holds its lane')
  const passed = await take(skip)
  t.same(dataOf(passed), [2])
  await api.ack(passed[0] as Popped)
  await advanceClock(61_000)
  t.match(await takeSoon(hold), [{ data: 1, attempt: 2 }])
  t.match(await takeSoon(skip), [{ data: 1, attempt: 2 }])
})

test('ttl and maxWaitTimeSeconds: a failed message that is too old no longer holds its lane, and waiters are woken', async (t) => {
  for (const option of ['ttl', 'maxWaitTimeSeconds']) {
    const queue = await queueWith({ [option]: 100, retryBackoffMs: [600_000] })
    await pushAll(queue, 1)
    await fail(await take(queue))
    await advanceClock(98_000)
    await pushAll(queue, 2)
    await nothingYet(t, queue, 'the failed message holds its lane')
    const waiting = takeSoon(queue)
    await advanceClock(3_000)
    const passed = await waiting
    t.same(dataOf(passed), [2])
    await api.ack(passed[0] as Popped)
    await advanceClock(600_000)
    await nothingYet(t, queue, 'it is not redelivered')
    t.equal(await deadIn(queue), 0)
  }
})

test('ordering: partition allows one lease per lane, none any number', async (t) => {
  const ordered = await queueWith({ ordering: 'partition' })
  const free = await queueWith({ ordering: 'none' })
  for (const queue of [ordered, free]) await pushAll(queue, 1, 2)
  t.same(dataOf(await take(ordered)), [1])
  await nothingYet(t, ordered, 'the lane is leased')
  t.same([...dataOf(await take(free)), ...dataOf(await take(free))], [1, 2])
  t.match(await api.post('/configure', { queue: free, options: { ordering: 'partition' } }), {
    status: 409,
    body: { code: 'queue_in_use' },
  })
})

test('a message that kills its consumer is dead-lettered after exactly four deliveries, and the lane continues', async (t) => {
  const queue = await queueWith({ leaseTime: 1, retryLimit: 3 })
  await pushAll(queue, 'poison', 'fine')
  const attempts: unknown[] = []
  for (let delivery = 1; delivery <= 4; delivery += 1) {
    const [message] = await takeSoon(queue)
    attempts.push([message?.data, message?.attempt])
    await advanceClock(1_100)
  }
  t.same(
    attempts,
    [1, 2, 3, 4].map((attempt) => ['poison', attempt]),
  )
  t.match(await takeSoon(queue), [{ data: 'fine', attempt: 1 }], 'no fifth delivery')
  const { body } = await api.get(`/dlq?queue=${queue}`)
  t.match(body, {
    total: 1,
    messages: [
      {
        data: 'poison',
        attempts: 4,
        errorCode: 'lease_expired',
        history: [1, 2, 3, 4].map((attempt) => ({ attempt, outcome: 'expired' })),
      },
    ],
  })
})

test('a message that kills its consumer charges no other message of its batch', async (t) => {
  const queue = await queueWith({ leaseTime: 1, retryLimit: 1 })
  await pushAll(queue, 'a', 'poison', 'b')
  t.equal((await takeSoon(queue, '?batch=3')).length, 3)
  await advanceClock(1_100)
  const again: unknown[] = []
  for (let i = 0; i < 3; i += 1) {
    const messages = await takeSoon(queue, '?batch=3')
    again.push(dataOf(messages))
    if (messages[0]?.data === 'poison') await advanceClock(1_100)
    else await api.ack(messages[0] as Popped)
  }
  t.same(again, [['a'], ['poison'], ['b']], 'one by one, in order')
  t.match((await api.get(`/dlq?queue=${queue}`)).body, { total: 1, messages: [{ data: 'poison' }] })
})

test('deadLetterTo: a consumer of the other queue gets the message, however its last attempt ended', async (t) => {
  const target = await queueWith({})
  const queue = await queueWith({ deadLetterTo: target, retryLimit: 0, leaseTime: 100 })
  for (const ending of ['failed', 'dlq', 'expired'] as const) {
    const waiting = takeSoon(target)
    await pushAll(queue, ending)
    const [message] = await take(queue)
    if (ending === 'expired') await advanceClock(101_000)
    else {
      const { body } = await api.ack(message as Popped, ending, { error: 'no' })
      t.match(body, [{ success: true, dlq: true }])
    }
    const came = await waiting
    const letter = { id: message?.id, queue, consumerGroup: 'default', attempts: 1, hops: 1 }
    t.match(came, [{ data: ending, attempt: 1, headers: { 'rouse-dead-letter': letter } }])
    await api.ack(came[0] as Popped)
  }
  t.equal(await deadIn(queue), 0)
  t.match(await api.post('/configure', { queue: target, options: { deadLetterTo: queue } }), {
    status: 400,
    body: { code: 'invalid_option' },
  })
})
