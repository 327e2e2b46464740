// How many requests pushes need.
import { eventually } from '@rouse/testkit'
import { test } from 'tap'
import { clientOf, sharedCluster, unique } from '../support/cluster.ts'
import { forwardingServer } from '../support/forwarding-server.ts'
import { gate } from '../support/gate.ts'
import { type ScriptedRequest, scriptedServer } from '../support/scripted-server.ts'

const { urls } = await sharedCluster()

function pushed({ body }: ScriptedRequest) {
  const items = (body.items as { transactionId: string }[]).map(({ transactionId }, index) => ({
    index,
    status: 'queued',
    message_id: `id-${transactionId}`,
    transaction_id: transactionId,
    partition_id: '1',
    queueName: 'q',
  }))
  return { status: 201, body: items }
}

function sizesOf(requests: readonly ScriptedRequest[]): number[] {
  return requests.map(({ body }) => body.items.length)
}

test('a lone push is sent at once, and only pushes made during a request share the next one', async (t) => {
  const answered = gate()
  const server = await scriptedServer(t, async (request) => {
    if (server.requests.length === 1) await answered.opened
    return pushed(request)
  })
  const queue = clientOf(t, server.url).queue('q')
  const first = queue.push(0)
  await eventually(() => server.requests.length === 1)
  const others = Array.from({ length: 63 }, (_, i) => queue.push(i + 1))
  answered.open()
  await Promise.all([first, ...others])
  t.same(sizesOf(server.requests), [1, 63])
  for (let i = 0; i < 3; i += 1) await queue.push(i)
  t.same(sizesOf(server.requests).slice(2), [1, 1, 1])
})

test('64 callers that push in a loop share every request', async (t) => {
  const server = await scriptedServer(t, pushed)
  const queue = clientOf(t, server.url).queue('q')
  const loops = Array.from({ length: 64 }, async (_, i) => {
    for (let n = 0; n < 10; n += 1) await queue.push(i * 10 + n)
  })
  await Promise.all(loops)
  t.same(sizesOf(server.requests), Array(10).fill(64))
  const keys = server.requests.flatMap(({ body }) =>
    body.items.map(({ transactionId }: { transactionId: string }) => transactionId),
  )
  t.equal(new Set(keys).size, 640, 'each push has a key of its own')
})

test('a shared request whose answer was lost is stored once, in order', async (t) => {
  let drops = 0
  const server = await forwardingServer(t, urls[0], () => drops++ === 0)
  const name = unique()
  const queue = clientOf(t, server.url).queue(name)
  const results = await Promise.all(Array.from({ length: 64 }, (_, i) => queue.push(i)))
  t.same(new Set(results.map(({ status }) => status)), new Set(['duplicate']))
  t.equal(new Set(results.map(({ id }) => id)).size, 64)
  t.same(sizesOf(server.requests), [64, 64])
  t.same(
    server.requests.map(({ body }) => body.items[0].transactionId),
    Array(2).fill(results[0]?.transactionId),
  )
  const popped = await clientOf(t, urls).queue(name).pop({ batch: 100 })
  t.same(
    popped.map(({ data }) => data),
    Array.from({ length: 64 }, (_, i) => i),
  )
})

test('a refused item and a lost answer in one batch fail only the refused item', async (t) => {
  let drops = 0
  const server = await forwardingServer(
    t,
    urls[0],
    ({ body }) => body.items.length === 4 && drops++ === 0,
  )
  const name = unique()
  const queue = clientOf(t, server.url).queue(name)
  // The eight pushes go out as one request. It is refused, because item 6 is invalid, so the client sends
  // each half alone. The first half is stored, but its answer is lost.
  const results = await Promise.allSettled(
    Array.from({ length: 8 }, (_, i) => queue.push(i, i === 6 ? { partition: 'a\u0000b' } : {})),
  )
  t.same(
    results.map((result) => (result.status === 'fulfilled' ? 'stored' : result.reason.code)),
    [...Array(6).fill('stored'), 'invalid_name', 'stored'],
  )
  t.equal(drops > 0, true)
  const popped = await clientOf(t, urls).queue(name).pop({ batch: 100 })
  t.same(
    popped.map(({ data }) => data),
    [0, 1, 2, 3, 4, 5, 7],
  )
})

test('a request is limited in size, and a push above the limit is sent alone', async (t) => {
  const server = await scriptedServer(t, pushed)
  const queue = clientOf(t, server.url).queue('q')
  const sizes = [400_000, 400_000, 400_000, 1_100_000, 10, 10]
  await Promise.all(sizes.map((size) => queue.push('x'.repeat(size))))
  t.same(sizesOf(server.requests), [2, 1, 1, 2])
})

test('waiting pushes are limited in size, and those within the limit are stored', async (t) => {
  const answered = gate()
  const server = await scriptedServer(t, async (request) => {
    await answered.opened
    return pushed(request)
  })
  const queue = clientOf(t, server.url).queue('q')
  const payload = 'x'.repeat(4 * 1024 * 1024)
  const pushes = Array.from({ length: 16 }, () => queue.push(payload))
  const results = Promise.allSettled(pushes)
  answered.open()
  t.same(
    (await results).map((result) =>
      result.status === 'fulfilled' ? result.value.status : result.reason.code,
    ),
    [...Array(15).fill('queued'), 'buffer_full'],
  )
  t.match(await queue.push(payload), { status: 'queued' }, 'the buffer has room again')
})
