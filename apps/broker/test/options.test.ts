// Every option of a queue does what it says, over HTTP. Long waits pass on the database's clock.
import { eventually } from '@rouse/testkit'
import { type Test, test } from 'tap'
import { apiOf } from './support/http.ts'
import { sharedBroker, unique } from './support/shared-broker.ts'

const node = await sharedBroker({ instrumented: true })
const api = apiOf(node.url)
const { advanceClock } = node.database

interface Popped {
  readonly data: unknown
  readonly attempt: number
  readonly transactionId: string
  readonly partitionId: string
  readonly leaseId: string
}

/** A queue with these options. */
async function queueWith(options: object, more: object = {}): Promise<string> {
  const queue = unique()
  const { body } = await api.post('/configure', { queue, options, ...more })
  if (body.configured !== true) throw new Error(JSON.stringify(body))
  return queue
}

const pushAll = (queue: string, ...payloads: unknown[]) =>
  api.push(...payloads.map((payload) => ({ queue, payload })))

/** What a pop gets now. */
async function take(queue: string, query = ''): Promise<Popped[]> {
  const { body } = await api.pop(queue, query)
  return body?.messages ?? []
}

/** What a pop gets in the end: the node has to notice that the clock moved. */
async function takeSoon(queue: string, query = '?'): Promise<Popped[]> {
  return take(queue, `${query}&wait=true&timeout=15000`)
}

const dataOf = (messages: readonly Popped[]) => messages.map(({ data }) => data)
const fail = async (messages: readonly Popped[], more: object = {}) =>
  api.ack(messages[0] as Popped, 'failed', more)

async function deadIn(queue: string): Promise<number> {
  return (await api.get(`/dlq?queue=${queue}`)).body.total
}

/** How many messages are in the log. */
async function kept(queue: string): Promise<number> {
  return (await api.get(`/messages?queue=${queue}&limit=1000`)).body.messages.length
}

async function nothingYet(t: Test, queue: string, why: string): Promise<void> {
  t.equal((await api.pop(queue)).status, 204, why)
}

test('leaseTime: an unacknowledged message comes back after it', async (t) => {
  const queue = await queueWith({ leaseTime: 100 })
  await pushAll(queue, 1)
  t.same(dataOf(await take(queue)), [1])
  await advanceClock(99_000)
  await nothingYet(t, queue, 'before')
  await advanceClock(2_000)
  t.match(await takeSoon(queue), [{ data: 1, attempt: 2 }])
})

test('delayedProcessing: every message waits so long', async (t) => {
  const queue = await queueWith({ delayedProcessing: 100 })
  const { body } = await pushAll(queue, 1)
  t.match(body, [{ status: 'scheduled' }])
  await advanceClock(98_000)
  await nothingYet(t, queue, 'before')
  await advanceClock(3_000)
  t.same(dataOf(await takeSoon(queue)), [1])
})

test('windowBuffer: a partition is delivered once it has been quiet so long', async (t) => {
  const queue = await queueWith({ windowBuffer: 100 })
  await pushAll(queue, 1)
  await nothingYet(t, queue, 'just pushed')
  await advanceClock(60_000)
  await pushAll(queue, 2)
  await advanceClock(60_000)
  await nothingYet(t, queue, 'the second push began the quiet anew')
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
  await eventually(async () => (await kept(unread)) === 0, { timeoutMs: 15_000 })
})

test('retentionSeconds: unconsumed messages go after it, and are kept for ever without', async (t) => {
  const queue = await queueWith({ retentionSeconds: 100 })
  const forEver = await queueWith({})
  const switchedOff = await queueWith({ retentionSeconds: 100, retentionEnabled: false })
  for (const one of [queue, forEver, switchedOff]) await pushAll(one, 1, 2)
  await advanceClock(3 * 86_400_000)
  await eventually(async () => (await kept(queue)) === 0, { timeoutMs: 15_000 })
  t.equal(await kept(forEver), 2)
  t.equal(await kept(switchedOff), 2)
  t.same(dataOf(await take(forEver)), [1])
})

test('completedRetentionSeconds: consumed messages go after it, a day by default, never with -1', async (t) => {
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
  await eventually(async () => (await kept(queue)) === 1, { timeoutMs: 15_000 })
  t.same(await keptOf(), [1, 2, 2], 'what is not consumed stays')
  await advanceClock(86_400_000)
  await eventually(async () => (await kept(byDefault)) === 1, { timeoutMs: 15_000 })
  t.same(await keptOf(), [1, 1, 2])
})

test('maxSize: a push beyond it is refused whole, and taken when there is room', async (t) => {
  const queue = await queueWith({ maxSize: 2 })
  await pushAll(queue, 1)
  const refused = await pushAll(queue, 2, 3)
  t.match(refused, { status: 429, body: { code: 'queue_full', retryable: true } })
  t.ok(Number(refused.headers.get('retry-after')) > 0)
  t.equal((await pushAll(queue, 2)).status, 201)
  const [first] = await take(queue)
  t.equal((await pushAll(queue, 3)).status, 429, 'what is being worked on counts')
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

test('maxInFlight: no more are delivered to a group than so many at once', async (t) => {
  const queue = await queueWith({ maxInFlight: 2, ordering: 'none' })
  await pushAll(queue, 1, 2, 3, 4)
  const first = await take(queue, '?batch=10')
  t.same(dataOf(first), [1, 2])
  await nothingYet(t, queue, 'two are out')
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

test('retryLimit and retryBackoffMs: the ladder, its last step repeated, then a dead letter', async (t) => {
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
  t.equal(await deadIn(queue), 1, 'four deliveries, then it is given up')
  const once = await queueWith({ retryLimit: 0 })
  await pushAll(once, 1)
  await fail(await take(once))
  t.equal(await deadIn(once), 1)
})

test('retryDelay: a constant ladder, unless retryBackoffMs is given', async (t) => {
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

test('deadLetterQueue: false drops a message at its limit, by its old name too', async (t) => {
  for (const options of [{ deadLetterQueue: false }, { dlqAfterMaxRetries: false }]) {
    const queue = await queueWith({ ...options, retryLimit: 0 })
    await pushAll(queue, 1, 2)
    await fail(await take(queue))
    t.equal(await deadIn(queue), 0)
    t.same(dataOf(await take(queue)), [2], 'the lane goes on')
  }
})

test('onFailure: hold keeps the order, skip lets the others pass', async (t) => {
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

test('ordering: partition has one lease a lane, none any number', async (t) => {
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

test('poison: a message that kills its consumer is given up after exactly four deliveries, and the lane goes on', async (t) => {
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

test('poison in a batch charges only itself', async (t) => {
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
