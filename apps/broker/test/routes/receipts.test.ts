// All messages of one pop share a leaseId, and each has a receipt. An ack names its message by the receipt
// alone, or by leaseId, transactionId and partitionId, on any node. In release 0.1.0 the receipt was called
// `leaseId`, so an ack may send a receipt as its `leaseId`.
import { t as root, type Test, test } from 'tap'
import { startCluster } from '../support/cluster.ts'
import { ackOf, apiOf } from '../support/http.ts'
import { unique } from '../support/shared-broker.ts'

interface Message {
  readonly transactionId: string
  readonly partitionId: string
  readonly leaseId: string
  readonly receipt: string
  readonly data: unknown
  readonly attempt: number
}

const nodes = await startCluster(root as unknown as Test, { nodes: 2 })
const { database } = nodes[0] as (typeof nodes)[number]
/** Messages are popped from one node and acknowledged on the other. */
const [here, there] = nodes.map(({ url }) => apiOf(url)) as [Api, Api]

type Api = ReturnType<typeof apiOf>

const lost = { status: 409, body: { code: 'lease_lost' } }

interface Item {
  readonly payload: unknown
  readonly partition?: string
  readonly transactionId?: string
  readonly delayMs?: number
}

/**
 * Pushes the items, waits until all are deliverable, and pops them in one lease. Returns the messages in the
 * order of the items.
 */
async function pop(queue: string, items: readonly Item[]): Promise<readonly Message[]> {
  await here.push(...items.map((item) => ({ queue, ...item })))
  for (;;) {
    const { body } = await here.pop(queue, '?wait=true&timeout=5000&batch=50&partitions=50')
    const messages = body.messages as Message[]
    if (messages.length === items.length) {
      return items.map(({ payload }) => messages.find(({ data }) => data === payload) as Message)
    }
    await here.del(`/lease/${body.leaseId}`)
  }
}

const mixed = [
  { partition: 'a', payload: 'derived' },
  { partition: 'a', payload: 'keyed', transactionId: 'key' },
  { partition: 'b', payload: 'same key', transactionId: 'key' },
  { partition: 'b', payload: 'derived too' },
  { partition: 'c', payload: 'scheduled', delayMs: 1 },
]

/** The payloads of completed messages as texts, sorted. */
async function completed(queue: string): Promise<string[]> {
  const { body } = await there.get(`/messages?queue=${queue}&status=completed`)
  return textsOf(body.messages)
}

function textsOf(messages: readonly Message[]): string[] {
  return messages.map(({ data }) => String(data)).sort()
}

async function inFlight(queue: string): Promise<number> {
  return (await there.get(`/resources/queues/${queue}`)).body.groups[0].inFlight
}

test('all messages of a pop share the leaseId, and each has its own receipt', async (t) => {
  const messages = await pop(unique(), mixed)
  t.equal(new Set(messages.map(({ leaseId }) => leaseId)).size, 1)
  t.match(messages[0]?.leaseId, /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/)
  t.equal(new Set(messages.map(({ receipt }) => receipt)).size, messages.length)
})

const ways: Readonly<Record<string, (message: Message) => object>> = {
  'the receipt alone': ({ receipt }) => ({ receipt }),
  'leaseId, transactionId and partitionId': ackOf,
  'the leaseId of 0.1.0': (message) => ({ ...ackOf(message), leaseId: message.receipt }),
}

for (const [way, nameOf] of Object.entries(ways)) {
  test(`another node ends the messages of a pop one by one, by ${way}`, async (t) => {
    const queue = unique()
    const messages = await pop(queue, mixed)
    const ended: Message[] = []
    for (const message of messages) {
      t.match(await there.post('/ack', { ...nameOf(message), status: 'completed' }), {
        status: 200,
        body: [{ index: 0, success: true }],
      })
      ended.push(message)
      t.same(await completed(queue), textsOf(ended), 'and no other')
      t.match(await there.post('/ack', nameOf(message)), lost, 'not twice')
    }
  })

  test(`another node ends a part of a pop as failed, in a list, by ${way}`, async (t) => {
    const queue = unique()
    await here.post('/configure', { queue, options: { retryBackoffMs: [0], onFailure: 'skip' } })
    const messages = await pop(queue, mixed)
    const isGood = ({ data }: Message) => String(data).startsWith('derived')
    const acknowledgments = messages.map((message) => ({
      ...nameOf(message),
      status: isGood(message) ? 'completed' : 'failed',
    }))
    const { status, body } = await there.post('/ack/batch', { acknowledgments })
    t.equal(status, 200)
    t.same(
      body.map(({ success }: { success: boolean }) => success),
      messages.map(() => true),
    )
    t.same(await completed(queue), textsOf(messages.filter(isGood)))
    const bad = messages.filter((message) => !isGood(message))
    const again: Message[] = []
    while (again.length < bad.length) {
      const { body: next } = await there.pop(queue, '?wait=true&timeout=5000&batch=9&partitions=9')
      again.push(...next.messages)
    }
    t.same(textsOf(again), textsOf(bad))
    t.ok(again.every(({ attempt }) => attempt === 2))
  })

  test(`a transaction on another node ends messages, by ${way}`, async (t) => {
    const queue = unique()
    const target = unique()
    const messages = await pop(queue, mixed)
    const acks = messages.map((message) => ({ type: 'ack', ...nameOf(message) }))
    const push = { type: 'push', items: [{ queue: target, payload: 1 }] }
    const { status, body } = await there.post('/transaction', { operations: [...acks, push] })
    t.equal(status, 200, JSON.stringify(body))
    t.equal((await completed(queue)).length, messages.length)
    t.equal((await there.pop(target)).status, 200)
    t.match(await there.post('/transaction', { operations: [acks[0], push] }), lost)
    t.equal((await there.pop(target)).status, 204, 'nothing was pushed')
  })

  test(`acks in a pop on another node, by ${way}`, async (t) => {
    const queue = unique()
    const messages = await pop(queue, mixed)
    const acks = messages.map((message) => ({ ...nameOf(message), status: 'completed' }))
    const { body } = await there.post(`/pop/queue/${queue}`, { acks: [...acks, acks[0]] })
    const results = body.acks.map(({ success }: { success: boolean }) => success)
    t.same(results, [...messages.map(() => true), false])
    t.equal((await completed(queue)).length, messages.length)
  })
}

test('a list may name messages in different ways, and refuses only what is lost', async (t) => {
  const queue = unique()
  const messages = await pop(queue, mixed)
  const nameOf = Object.values(ways)
  const acknowledgments = messages.flatMap((message, i) => [
    nameOf[i % 3]?.(message),
    nameOf[(i + 1) % 3]?.(message),
  ])
  const { body } = await there.post('/ack/batch', { acknowledgments })
  t.same(
    body.map(({ success }: { success: boolean }) => success),
    messages.flatMap(() => [true, false]),
  )
  t.equal((await completed(queue)).length, messages.length)
})

test('the leaseId extends, releases and ends the whole pop on another node', async (t) => {
  const queue = unique()
  const { leaseId } = (await pop(queue, mixed))[0] as Message
  const extended = await there.post(`/lease/${leaseId}/extend`, { seconds: 3_000 })
  t.match(extended, { status: 200, body: { leaseId, success: true } })
  const { rows } = await database.pool.query(
    `select count(*)::integer as lanes, min(expires_at) > now() + interval '2900 s' as extended
     from rouse.leases where id = $1`,
    [leaseId],
  )
  t.same(rows, [{ lanes: 3, extended: true }])
  t.equal((await there.del(`/lease/${leaseId}`)).status, 200)
  t.equal(await inFlight(queue), 0)
  t.match(await there.del(`/lease/${leaseId}`), lost)
  const again = (await there.pop(queue, '?batch=9&partitions=9')).body
  t.equal(again.messages.length, mixed.length)
  t.equal((await here.post('/ack/batch', { leaseId: again.leaseId })).status, 200)
  t.equal((await completed(queue)).length, mixed.length)
})

test('the leaseId still extends and releases the rest of a pop after a part of it has ended', async (t) => {
  const queue = unique()
  const messages = await pop(queue, mixed)
  const { leaseId } = messages[0] as Message
  // All of partition a, and one of the two messages of partition b.
  for (const message of messages.slice(0, 3)) {
    t.equal((await there.post('/ack', { receipt: message.receipt })).status, 200)
  }
  const extended = await there.post(`/lease/${leaseId}/extend`, { seconds: 3_000 })
  t.match(extended, { status: 200, body: { leaseId, success: true } })
  const { rows } = await database.pool.query(
    'select count(*)::integer as lanes from rouse.leases where id = $1',
    [leaseId],
  )
  t.same(rows, [{ lanes: 2 }])
  t.equal((await there.del(`/lease/${leaseId}`)).status, 200)
  t.same(await completed(queue), textsOf(messages.slice(0, 3)))
  const again = (await there.pop(queue, '?batch=9&partitions=9')).body
  t.same(textsOf(again.messages), textsOf(messages.slice(3)))
})

test('ids of another message, partition or lease end nothing', async (t) => {
  const queue = unique()
  const [derived, keyed, sameKey] = (await pop(queue, mixed)) as [Message, Message, Message]
  const elsewhere = unique()
  const [other] = (await pop(elsewhere, [{ payload: 1, transactionId: 'key' }])) as [Message]
  for (const wrong of [
    { ...ackOf(keyed), transactionId: 'no such' },
    { ...ackOf(keyed), partitionId: other.partitionId },
    { ...ackOf(keyed), leaseId: other.leaseId },
    { ...ackOf(derived), leaseId: other.leaseId },
    { ...ackOf(derived), partitionId: sameKey.partitionId },
    { ...ackOf(derived), transactionId: `${derived.partitionId}-77` },
    { ...ackOf(keyed), leaseId: derived.receipt },
    { ...ackOf(keyed), leaseId: other.receipt },
    { receipt: 'nonsense' },
  ]) {
    t.match(await there.post('/ack', wrong), lost, JSON.stringify(wrong))
    const listed = await there.post('/ack/batch', { acknowledgments: [wrong] })
    t.match(listed, { status: 200, body: [{ success: false }] })
    t.match(await there.post('/transaction', { operations: [{ type: 'ack', ...wrong }] }), lost)
  }
  t.same([await completed(queue), await completed(elsewhere)], [[], []])
  t.same([await inFlight(queue), await inFlight(elsewhere)], [mixed.length, 1])
})

test('ids that do not go together are refused with 400, and nothing of the request is applied', async (t) => {
  const queue = unique()
  const [one, two] = (await pop(queue, mixed)) as [Message, Message]
  const cases: readonly [object, string, RegExp][] = [
    [{ receipt: one.receipt, leaseId: one.leaseId }, 'leaseId', /not be given with receipt/],
    [{ receipt: one.receipt, ...ackOf(one) }, 'transactionId', /not be given with receipt/],
    [{ receipt: one.leaseId }, 'receipt', /is a leaseId/],
    [{ leaseId: one.leaseId }, 'transactionId', /is missing/],
    [{ leaseId: one.leaseId, transactionId: 'key' }, 'partitionId', /is missing/],
    [{ transactionId: 'key', partitionId: one.partitionId }, 'leaseId', /is missing/],
  ]
  const good = { receipt: two.receipt }
  for (const [wrong, field, message] of cases) {
    const operations = [good, wrong].map((ack) => ({ type: 'ack', ...ack }))
    const requests: readonly [string, object, string][] = [
      ['/ack', wrong, ''],
      ['/ack/batch', { acknowledgments: [good, wrong] }, 'acknowledgments[1].'],
      [`/pop/queue/${queue}`, { acks: [good, wrong] }, 'acks[1].'],
      ['/transaction', { operations }, 'operations[1].'],
    ]
    for (const [path, request, at] of requests) {
      const { status, body } = await there.post(path, request)
      t.match({ status, code: body.code }, { status: 400, code: 'invalid_request' }, path)
      t.match(body.errors[0], { field: `${at}${field}`, message }, JSON.stringify(wrong))
    }
  }
  const { status, body } = await there.post('/ack/batch', { receipt: one.receipt })
  t.equal(status, 400)
  t.match(body.errors[1], { field: 'receipt', message: /names one message/ })
  t.same(await completed(queue), [])
})

test('ids of an earlier lease end nothing after the message was delivered again', async (t) => {
  const queue = unique()
  const old = await pop(queue, mixed)
  await here.del(`/lease/${old[0]?.leaseId}`)
  const { body } = await there.pop(queue, '?batch=9&partitions=9')
  t.equal(body.messages.length, mixed.length)
  for (const [way, nameOf] of Object.entries(ways)) {
    for (const message of old) t.match(await there.post('/ack', nameOf(message)), lost, way)
  }
  t.match(await there.post('/ack/batch', { leaseId: old[0]?.leaseId }), lost)
  t.match(await there.post(`/lease/${old[0]?.leaseId}/extend`), lost)
  t.equal(await inFlight(queue), mixed.length)
})

test('requiredLeases take the shared leaseId, also for stored keys', async (t) => {
  const queue = unique()
  const messages = await pop(queue, mixed)
  const other = await pop(unique(), [{ payload: 1 }])
  const unfenced = ({ transactionId, partitionId }: Message) => {
    return { type: 'ack', transactionId, partitionId }
  }
  const transact = (requiredLeases: (string | undefined)[], acked: readonly Message[]) =>
    there.post('/transaction', { operations: acked.map(unfenced), requiredLeases })
  const [first, ...rest] = messages as [Message, ...Message[]]
  t.match(await transact([other[0]?.leaseId], [first]), lost)
  t.equal((await transact([first.leaseId], [first])).status, 200)
  t.match(await transact([first.leaseId], [first]), lost)
  t.equal((await transact([first.leaseId, other[0]?.leaseId], rest)).status, 200)
  t.equal((await completed(queue)).length, messages.length)
})

test('an ack without its lease is refused if several required leases hold such a message', async (t) => {
  const queue = unique()
  await here.push({ queue, payload: 1, transactionId: 'key' })
  const take = async (group: string) => (await here.pop(queue, `?consumerGroup=${group}`)).body
  const [one, two] = [await take('one'), await take('two')]
  const { leaseId, ...ids } = ackOf(one.messages[0])
  const operations = [{ type: 'ack', ...ids }]
  const requiredLeases = [one.leaseId, two.leaseId]
  t.match(await there.post('/transaction', { operations, requiredLeases }), {
    status: 400,
    body: { errors: [{ field: 'operations[0].leaseId', message: /several of requiredLeases/ }] },
  })
  const fenced = [{ type: 'ack', ...ids, leaseId }]
  const answer = await there.post('/transaction', { operations: fenced, requiredLeases })
  t.equal(answer.status, 200)
  t.match(await there.post('/ack', ackOf(two.messages[0])), { status: 200 })
})

test('a key that looks like the derived id of another message ends only its own', async (t) => {
  const queue = unique()
  await here.push({ queue, payload: 'first' })
  const [first] = (await here.pop(queue)).body.messages as [Message]
  await here.ack(first)
  // The next seqs are 2 and 3, and the key of the message with seq 3 is the derived id of seq 2.
  const key = `${first.partitionId}-2`
  const messages = await pop(queue, [{ payload: 2 }, { payload: 3, transactionId: key }])
  const [plain, tricky] = messages as [Message, Message]
  t.equal(plain.transactionId, tricky.transactionId)
  t.equal(tricky.leaseId, tricky.receipt, 'it has a leaseId of its own')
  t.equal((await there.ack(tricky)).status, 200)
  t.same(await completed(queue), ['3', 'first'])
  t.equal((await there.post(`/lease/${tricky.leaseId}/extend`)).status, 200, 'of the whole pop')
  t.equal((await there.ack(plain)).status, 200)
})

test('messages with the same key in one pop are told apart', async (t) => {
  const queue = unique()
  await here.push({ queue, payload: 1, transactionId: 'key' })
  await database.pool.query('delete from rouse.dedup')
  await here.push({ queue, payload: 2, transactionId: 'key' })
  const [one, two] = (await here.pop(queue, '?batch=2')).body.messages as [Message, Message]
  t.equal((await there.ack(two)).status, 200)
  t.same(await completed(queue), ['2'])
  t.equal((await there.ack(one)).status, 200)
})
