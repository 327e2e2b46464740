// How many requests a worker needs, and what happens when they fail.
import { eventually } from '@rouse/testkit'
import { type Test, test } from 'tap'
import { clientOf, sharedCluster, unique } from '../support/cluster.ts'
import { forwardingServer } from '../support/forwarding-server.ts'
import { gate } from '../support/gate.ts'
import { type ScriptedRequest, scriptedServer } from '../support/scripted-server.ts'

const { urls } = await sharedCluster()

const isPop = ({ path }: ScriptedRequest): boolean => path.startsWith('/api/v1/pop')
const isAck = ({ path }: ScriptedRequest): boolean => path.startsWith('/api/v1/ack')

test('at a low rate each fetch carries the acknowledgement of the message before', async (t) => {
  const server = await forwardingServer(t, urls[0])
  const name = unique()
  const queue = clientOf(t, urls).queue(name)
  const seen: unknown[] = []
  const worker = clientOf(t, server.url)
    .queue(name)
    .work(({ data }) => void seen.push(data))
  for (let i = 0; i < 5; i += 1) {
    await queue.push(i)
    await eventually(() => seen.length === i + 1, { intervalMs: 1 })
  }
  await eventually(() => carried(server.requests) === 5)
  t.equal(server.requests.filter(isAck).length, 0, 'no separate request')
  await worker.stop()
  t.same(await queue.pop({ batch: 10 }), [])
})

test('an acknowledgement that a handler waits for is not carried by a waiting fetch', async (t) => {
  const server = await forwardingServer(t, urls[0])
  const name = unique()
  const queue = clientOf(t, urls).queue(name)
  await queue.push(1)
  const acked = gate()
  const worker = clientOf(t, server.url)
    .queue(name)
    .work(async (_message, context) => {
      await context.ack()
      acked.open()
    })
  await acked.opened
  t.same([carried(server.requests), server.requests.filter(isAck).length], [0, 1])
  await worker.stop()
})

test('a fetch whose answer was lost loses no acknowledgement', async (t) => {
  let drops = 0
  const server = await forwardingServer(
    t,
    urls[0],
    ({ body }) => carriedBy(body) > 0 && drops++ === 0,
  )
  const name = unique()
  const queue = clientOf(t, urls).queue(name)
  const errors: unknown[] = []
  const seen: unknown[] = []
  const worker = clientOf(t, server.url)
    .queue(name)
    .work({ onError: (error) => errors.push(error) }, ({ data }) => void seen.push(data))
  await queue.push(1)
  await eventually(() => server.requests.some(isAck))
  await queue.push(2)
  await eventually(() => seen.length === 2)
  await worker.stop()
  t.equal(drops, 1)
  t.same(seen, [1, 2])
  t.same(errors, [])
  t.same(await queue.pop({ batch: 10 }), [])
})

test('a large lease is acknowledged as a whole before the next fetch', async (t) => {
  const server = await forwardingServer(t, urls[0])
  const name = unique()
  const queue = clientOf(t, urls).queue(name)
  await queue.pushMany(Array.from({ length: 50 }, (_, payload) => ({ payload })))
  let count = 0
  const worker = clientOf(t, server.url)
    .queue(name)
    .work({ concurrency: 64 }, () => {
      count += 1
    })
  await eventually(() => server.requests.filter(isPop).length === 2)
  await worker.stop()
  t.equal(count, 50)
  const calls = server.requests.filter((request) => isPop(request) || isAck(request))
  t.same(
    calls.map((request) => (isPop(request) ? 'pop' : 'ack')),
    ['pop', 'ack', 'pop'],
  )
  t.equal(calls[1]?.body.acknowledgments, undefined, 'not as a list')
  t.same(await queue.pop({ batch: 100 }), [])
})

test('an acknowledgement without an answer does not keep the worker from fetching', async (t) => {
  const answered = gate()
  const fetched = gate()
  const server = await fakeQueue(t, 50, {
    onAck: () => answered.opened,
    onEmpty: () => {
      fetched.open()
      return answered.opened
    },
  })
  const worker = clientOf(t, server.url)
    .queue('q')
    .work({ concurrency: 64 }, () => {})
  await fetched.opened
  t.ok(server.requests.some(isAck), 'the acknowledgement was sent, and has no answer')
  answered.open()
  await worker.stop()
})

/** A queue with this many messages in one partition. */
async function fakeQueue(
  t: Test,
  count: number,
  { onAck, onEmpty }: { onAck: () => Promise<void>; onEmpty: () => Promise<void> },
) {
  let left = count
  return await scriptedServer(t, async (request) => {
    if (isAck(request)) {
      await onAck()
      return { status: 200, body: [{ index: 0, success: true }] }
    }
    if (!isPop(request)) return { status: 200, body: { options: { ordering: 'none' } } }
    if (left === 0) {
      await onEmpty()
      return { status: 204 }
    }
    const messages = Array.from({ length: left }, (_, i) => ({
      id: `id-${i}`,
      transactionId: `t-${i}`,
      partitionId: 'p',
      leaseId: 'lease',
      receipt: `r-${i}`,
      data: i,
    }))
    left = 0
    return { status: 200, body: { messages } }
  })
}

test('an acknowledgement has the receipt alone, and the three ids if a node of 0.1.0 delivered it', async (t) => {
  const accepted = { status: 200, body: [{ index: 0, success: true }] }
  const server = await scriptedServer(t, () => accepted)
  const queue = clientOf(t, server.url).queue('q')
  const ids = { transactionId: 't', partitionId: '1', leaseId: 'l' }
  await queue.ack({ ...ids, receipt: 'r' } as never)
  await queue.ack(ids as never)
  t.same(
    server.requests.map(({ body }) => body.acknowledgments),
    [[{ receipt: 'r', status: 'completed' }], [{ ...ids, status: 'completed' }]],
  )
})

/** The number of acknowledgements in fetches. */
function carried(requests: readonly ScriptedRequest[]): number {
  return requests.filter(isPop).reduce((sum, { body }) => sum + carriedBy(body), 0)
}

function carriedBy(body: { acks?: unknown[] } | undefined): number {
  return body?.acks?.length ?? 0
}
