import { eventually } from '@rouse/testkit'
import { test } from 'tap'
import { type Queue, traceparentOf } from '../../src/index.ts'
import { clientOf, sharedCluster, unique } from '../support/cluster.ts'
import { forwardingServer } from '../support/forwarding-server.ts'

const { urls } = await sharedCluster()

test('a message is stored with all its options', async (t) => {
  const queue = clientOf(t, urls).queue(unique())
  const traceparent = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01'
  const { id, status } = await queue.push(
    { to: 'ann', nothing: null },
    { partition: 'a/b', headers: { tenant: 7 }, traceparent },
  )
  t.equal(status, 'queued')
  const [message] = await queue.pop({ partition: 'a/b' })
  t.match(message, {
    id,
    data: { to: 'ann', nothing: null },
    partition: 'a/b',
    headers: { tenant: 7, traceparent },
    traceId: '0af7651916cd43dd8448eb211c80319c',
    attempt: 1,
  })
  t.equal(message === undefined ? undefined : traceparentOf(message), traceparent)
})

test('a dedupeKey is accepted once', async (t) => {
  const queue = clientOf(t, urls).queue(unique())
  const first = await queue.push(1, { dedupeKey: 'welcome-42' })
  const second = await queue.push(2, { dedupeKey: 'welcome-42' })
  t.match(first, { status: 'queued', transactionId: 'welcome-42' })
  t.match(second, { status: 'duplicate', id: first.id })
})

test('a delayed message is delivered when it is due', async (t) => {
  const queue = clientOf(t, urls).queue(unique())
  t.equal((await queue.push(1, { delay: '1s' })).status, 'scheduled')
  t.equal((await queue.push(2, { runAt: new Date(Date.now() + 600_000) })).status, 'scheduled')
  t.same(await queue.pop(), [])
  const [message] = await queue.pop({ wait: '10s' })
  t.equal(message?.data, 1)
})

test('concurrent pushes share requests and stay in order', async (t) => {
  const name = unique()
  const forwarded = await forwardingServer(t, urls[0])
  const queue = clientOf(t, forwarded.url).queue(name)
  const pushed = await Promise.all(Array.from({ length: 2_500 }, (_, i) => queue.push(i)))
  t.equal(new Set(pushed.map(({ id }) => id)).size, 2_500)
  t.equal(forwarded.requests.length, 3, 'a thousand each')
  const popped = []
  for (let messages = await queue.pop({ batch: 1_000 }); messages.length > 0; ) {
    popped.push(...messages)
    await queue.ack(messages)
    messages = await queue.pop({ batch: 1_000 })
  }
  t.same(
    popped.map(({ data }) => data),
    Array.from({ length: 2_500 }, (_, i) => i),
  )
})

test('a bad push among good ones rejects alone', async (t) => {
  const queue = clientOf(t, urls).queue(unique())
  const results = await Promise.allSettled([
    queue.push(1),
    queue.push(2, { partition: 'a\u0000b' }),
    queue.push(3),
    queue.push(undefined),
    queue.push(10n),
    queue.push(4, { delay: 'soon' as never }),
    queue.push(5),
  ])
  t.same(
    results.map((result) => (result.status === 'fulfilled' ? 'stored' : result.reason.code)),
    [
      'stored',
      'invalid_name',
      'stored',
      'invalid_payload',
      'invalid_payload',
      'invalid_delay',
      'stored',
    ],
  )
  const popped = await queue.pop({ batch: 10 })
  t.same(
    popped.map(({ data }) => data),
    [1, 3, 5],
  )
})

test('pushMany is all or nothing', async (t) => {
  const queue = clientOf(t, urls).queue(unique())
  await t.rejects(queue.pushMany([{ payload: 1 }, { payload: 2, partition: '\u0000' }]), {
    code: 'invalid_name',
  })
  t.same(await queue.pop({ batch: 10 }), [])
  const pushed = await queue.pushMany([{ payload: 1 }, { payload: 2, dedupeKey: 'k' }])
  t.match(pushed, [{ status: 'queued' }, { status: 'queued', transactionId: 'k' }])
})

test('pushMany refuses more messages than fit one request before sending anything', async (t) => {
  const forwarded = await forwardingServer(t, urls[0])
  const queue = clientOf(t, forwarded.url).queue(unique())
  const entries = Array.from({ length: 1_001 }, (_, payload) => ({ payload }))
  await t.rejects(queue.pushMany(entries), { code: 'invalid_request', message: /chunked: true/ })
  t.equal(forwarded.requests.length, 0)
  t.equal((await queue.pushMany(entries.slice(1))).length, 1_000)
  t.equal(forwarded.requests.length, 1)
})

test('chunked pushMany stores any number, in order', async (t) => {
  const queue = clientOf(t, urls, { bufferMax: 1_000 }).queue(unique())
  const entries = Array.from({ length: 2_500 }, (_, payload) => ({ payload }))
  const pushed = await queue.pushMany(entries, { chunked: true })
  t.equal(new Set(pushed.map(({ id }) => id)).size, 2_500)
  t.same(await popAll(queue), Array.from(entries.keys()))
})

test('a failed chunked pushMany reports what is stored, and repeating it stores nothing twice', async (t) => {
  for (const repeat of ['same array', 'rest'] as const) {
    let fails = true
    let pushes = 0
    // The second request is stored, but its response is lost. Then no request gets a response for a while.
    const forwarded = await forwardingServer(t, urls[0], ({ path }) => {
      if (path === '/api/v1/push') pushes += 1
      return fails && pushes > 1
    })
    const queue = clientOf(t, forwarded.url, { retryFor: '300ms' }).queue(unique())
    const entries = Array.from({ length: 2_500 }, (_, payload) => ({ payload }))
    const error = await queue.pushMany(entries, { chunked: true }).catch((thrown) => thrown)
    t.match(error, { name: 'RouseError', code: 'no_answer', firstNotStored: 1_000 })
    t.equal(new Set(error.stored).size, 1_000)
    t.equal(error.rest.length, 1_500)
    fails = false
    const pushed = await eventually(() =>
      queue.pushMany(repeat === 'rest' ? error.rest : entries, { chunked: true }),
    )
    t.equal(pushed.length, repeat === 'rest' ? 1_500 : 2_500)
    t.same(await popAll(queue), Array.from(entries.keys()), repeat)
  }
})

test('repeating pushMany with the same array stores nothing twice after a failure, but does after a success', async (t) => {
  let fails = true
  const forwarded = await forwardingServer(t, urls[0], () => fails)
  const queue = clientOf(t, forwarded.url, { retryFor: '300ms' }).queue(unique())
  const entries = [{ payload: 1 }, { payload: 2 }]
  await t.rejects(queue.pushMany(entries), { code: 'no_answer' })
  fails = false
  await eventually(() => queue.pushMany(entries))
  t.same(await popAll(queue), [1, 2])
  await queue.pushMany(entries)
  t.same(await popAll(queue), [1, 2], 'a separate call')
})

test('a runAt that is not a Date is refused with the name of the field', async (t) => {
  const queue = clientOf(t, urls).queue(unique())
  for (const runAt of ['2027-01-01', 'tomorrow', 1_800_000_000_000, new Date(Number.NaN)]) {
    await t.rejects(queue.push(1, { runAt: runAt as never }), {
      code: 'invalid_delay',
      message: /^runAt must be/,
    })
  }
  t.same(await queue.pop(), [], 'nothing is stored')
})

test('a push whose answer was lost is stored once', async (t) => {
  const name = unique()
  let dropped = 0
  const forwarded = await forwardingServer(t, urls[0], () => dropped++ === 0)
  const queue = clientOf(t, forwarded.url).queue(name)
  const { status } = await queue.push('once')
  t.equal(status, 'duplicate', 'the first try had stored it')
  t.equal(forwarded.requests.length, 2)
  const popped = await queue.pop({ batch: 10 })
  t.equal(popped.length, 1)
})

test('a push whose answer was lost is not repeated if the dedupe window is too short', async (t) => {
  for (const dedupWindowSeconds of [0, 1]) {
    const name = unique()
    await clientOf(t, urls).queue(name).configure({ dedupWindowSeconds })
    let dropped = 0
    const forwarded = await forwardingServer(t, urls[0], () => dropped++ === 0)
    const queue = clientOf(t, forwarded.url).queue(name)
    await t.rejects(queue.push('once'), { code: 'outcome_unknown', retryable: false })
    t.same(await popAll(queue), ['once'], `${dedupWindowSeconds} s`)
    t.equal((await queue.push('next')).status, 'queued')
  }
})

test('a full buffer refuses pushes until it has room', async (t) => {
  const queue = clientOf(t, urls, { bufferMax: 3 }).queue(unique())
  const results = await Promise.allSettled([1, 2, 3, 4].map((n) => queue.push(n)))
  t.same(
    results.map((result) => (result.status === 'fulfilled' ? 'stored' : result.reason.code)),
    ['stored', 'stored', 'stored', 'buffer_full'],
  )
  t.equal((await queue.push(5)).status, 'queued')
})

test('closing sends waiting pushes and refuses new ones', async (t) => {
  const name = unique()
  const rouse = clientOf(t, urls)
  const pushes = Array.from({ length: 50 }, (_, i) => rouse.queue(name).push(i))
  await rouse.close()
  t.equal((await Promise.all(pushes)).length, 50)
  await t.rejects(rouse.queue(name).push(51), { code: 'closed' })
  t.equal((await clientOf(t, urls).queue(name).pop({ batch: 100 })).length, 50)
})

test('a push carries the trace context of the program', async (t) => {
  const traceparent = '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01'
  const queue = clientOf(t, urls, { traceparent: () => traceparent }).queue(unique())
  await queue.push(1)
  t.match(await queue.pop(), [{ headers: { traceparent } }])
})

/** Pops and acknowledges all messages of the queue. */
// biome-ignore lint/suspicious/noExplicitAny: accepts the queue of any client
async function popAll(queue: Queue<any, any>): Promise<unknown[]> {
  const popped: unknown[] = []
  for (;;) {
    const messages = await queue.pop({ batch: 1_000 })
    if (messages.length === 0) return popped
    popped.push(...messages.map(({ data }) => data))
    await queue.ack(messages)
  }
}
