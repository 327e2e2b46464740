// The effect of every queue option over HTTP, except those about failed messages (failure-options.test.ts).
// Instead of waiting, tests advance the clock of the database.
import { eventually } from '@rouse/testkit'
import { test } from 'tap'
import { optionsNode, type Popped } from '../support/queue-options.ts'
import { unique } from '../support/shared-broker.ts'

const { node, api, queueWith, pushAll, take, takeSoon, dataOf, kept, nothingYet } =
  await optionsNode()
const { advanceClock } = node.database

/**
 * Advances the clock by minutes until retention has removed the messages: a round that ran while the clock
 * moved used the old time, and rounds are a minute apart.
 */
async function untilKept(queue: string, count: number): Promise<void> {
  const isDone = async () => {
    if ((await kept(queue)) === count) return true
    await advanceClock(60_000)
    return false
  }
  await eventually(isDone, { timeoutMs: 30_000, intervalMs: 500 })
}

test('leaseTime: an unacknowledged message is redelivered after it', async (t) => {
  const queue = await queueWith({ leaseTime: 100 })
  await pushAll(queue, 1)
  t.same(dataOf(await take(queue)), [1])
  await advanceClock(99_000)
  await nothingYet(t, queue, 'before')
  await advanceClock(2_000)
  t.match(await takeSoon(queue), [{ data: 1, attempt: 2 }])
})

test('delayedProcessing: every message is delivered after this delay', async (t) => {
  const queue = await queueWith({ delayedProcessing: 100 })
  const { body } = await pushAll(queue, 1)
  t.match(body, [{ status: 'scheduled' }])
  await advanceClock(98_000)
  await nothingYet(t, queue, 'before')
  await advanceClock(3_000)
  t.same(dataOf(await takeSoon(queue)), [1])
})

test('windowBuffer: a partition is delivered once it had no push for this time', async (t) => {
  const queue = await queueWith({ windowBuffer: 100 })
  await pushAll(queue, 1)
  await nothingYet(t, queue, 'just pushed')
  await advanceClock(60_000)
  await pushAll(queue, 2)
  await advanceClock(60_000)
  await nothingYet(t, queue, 'the second push restarted the window')
  await advanceClock(50_000)
  t.same(dataOf(await takeSoon(queue, '?batch=10')), [1, 2])
})

test('ttl: a message that is too old is not delivered', async (t) => {
  const queue = await queueWith({ ttl: 100 })
  await pushAll(queue, 1)
  await advanceClock(60_000)
  await pushAll(queue, 2)
  await advanceClock(60_000)
  t.same(dataOf(await take(queue, '?batch=10')), [2])
})

test('maxWaitTimeSeconds: older unconsumed messages are evicted', async (t) => {
  const queue = await queueWith({ maxWaitTimeSeconds: 100 })
  await pushAll(queue, 1)
  await advanceClock(60_000)
  await pushAll(queue, 2)
  await advanceClock(60_000)
  t.same(dataOf(await take(queue, '?batch=10')), [2])
  const unread = await queueWith({ maxWaitTimeSeconds: 100 })
  await pushAll(unread, 1)
  await advanceClock(161_000)
  await untilKept(unread, 0)
})

test('retentionSeconds: unconsumed messages are removed after it, and kept forever without it', async (t) => {
  const queue = await queueWith({ retentionSeconds: 100 })
  const forEver = await queueWith({})
  const switchedOff = await queueWith({ retentionSeconds: 100, retentionEnabled: false })
  for (const one of [queue, forEver, switchedOff]) await pushAll(one, 1, 2)
  await advanceClock(3 * 86_400_000)
  await untilKept(queue, 0)
  t.equal(await kept(forEver), 2)
  t.equal(await kept(switchedOff), 2)
  t.same(dataOf(await take(forEver)), [1])
})

test('completedRetentionSeconds: consumed messages are removed after it, after a day by default, never with -1', async (t) => {
  const queue = await queueWith({ completedRetentionSeconds: 3_600 })
  const byDefault = await queueWith({})
  const never = await queueWith({ completedRetentionSeconds: -1 })
  const all = [queue, byDefault, never]
  for (const one of all) {
    await pushAll(one, 1, 2)
    await take(one, '?autoAck=true')
  }
  const keptOf = () => Promise.all(all.map(kept))
  await advanceClock(3_700_000)
  await untilKept(queue, 1)
  t.same(await keptOf(), [1, 2, 2], 'unconsumed messages stay')
  await advanceClock(86_400_000)
  await untilKept(byDefault, 1)
  t.same(await keptOf(), [1, 1, 2])
})

test('maxSize: a push beyond it is refused as a whole, and accepted when there is room', async (t) => {
  const queue = await queueWith({ maxSize: 2 })
  await pushAll(queue, 1)
  const refused = await pushAll(queue, 2, 3)
  t.match(refused, { status: 429, body: { code: 'queue_full', retryable: true } })
  t.ok(Number(refused.headers.get('retry-after')) > 0)
  t.equal((await pushAll(queue, 2)).status, 201)
  const [first] = await take(queue)
  t.equal((await pushAll(queue, 3)).status, 429, 'leased messages count')
  await api.ack(first as Popped)
  t.equal((await pushAll(queue, 3)).status, 201)
})

test('priority: a pop of a namespace takes the highest first', async (t) => {
  const namespace = unique('namespace')
  const queues = new Map<number, string>()
  for (const priority of [1, 10, -5]) {
    queues.set(priority, await queueWith({ priority }, { namespace }))
  }
  for (const [priority, queue] of queues) await pushAll(queue, priority)
  const got: unknown[] = []
  for (let i = 0; i < 3; i += 1) {
    const { body } = await api.get(`/pop?namespace=${namespace}&autoAck=true`)
    got.push(body.messages[0].data)
  }
  t.same(got, [10, 1, -5])
})

test('maxInFlight: a group has at most this many leased messages', async (t) => {
  const queue = await queueWith({ maxInFlight: 2, ordering: 'none' })
  await pushAll(queue, 1, 2, 3, 4)
  const first = await take(queue, '?batch=10')
  t.same(dataOf(first), [1, 2])
  await nothingYet(t, queue, 'two messages are leased')
  t.same(dataOf(await take(queue, '?batch=10&consumerGroup=other')), [1, 2], 'per group')
  const waiting = takeSoon(queue, '?batch=10')
  await api.ack(first[0] as Popped)
  t.same(dataOf(await waiting), [3], 'an ack makes room and wakes')
})

test('dedupWindowSeconds: the same transactionId is a duplicate within it, and new after it', async (t) => {
  const queue = await queueWith({ dedupWindowSeconds: 100 })
  const push = async () => (await api.push({ queue, payload: 1, transactionId: 'same' })).body[0]
  const first = await push()
  await advanceClock(90_000)
  t.match(await push(), { status: 'duplicate', message_id: first.message_id })
  await advanceClock(20_000)
  t.match(await push(), { status: 'queued' })
  t.equal(await kept(queue), 2)
  const off = await queueWith({ dedupWindowSeconds: 0 })
  for (let i = 0; i < 2; i += 1) {
    t.match((await api.push({ queue: off, payload: 1, transactionId: 'same' })).body, [
      { status: 'queued' },
    ])
  }
})
