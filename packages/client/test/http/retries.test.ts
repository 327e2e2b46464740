// Failover and backoff of calls, tested with servers that fail on purpose.
import { eventually } from '@rouse/testkit'
import { test } from 'tap'
import { clientOf } from '../support/cluster.ts'
import { type ScriptedRequest, scriptedServer } from '../support/scripted-server.ts'

const overloaded = { status: 503, body: { code: 'overloaded', detail: 'busy', retryable: true } }

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

test('a burst of 503 answers does not cause a burst of retries', async (t) => {
  const server = await scriptedServer(t, () => overloaded)
  const rouse = clientOf(t, server.url, { retryFor: '3s' })
  const workers = Array.from({ length: 10 }, (_, i) => rouse.queue(`w${i}`).work(() => {}))
  const pushes = Array.from({ length: 200 }, (_, i) => rouse.queue(`q${i % 20}`).push(i))
  const results = await Promise.allSettled(pushes)
  t.ok(
    results.every((result) => result.status === 'rejected' && result.reason.code === 'overloaded'),
  )
  await Promise.all(workers.map((worker) => worker.stop()))
  // Each of 20 queues and 10 workers may get one 503 before the client pauses; then it sends only probes.
  t.ok(server.requests.length <= 60, `${server.requests.length} requests in 3 s`)
})

test('the client waits for Retry-After', async (t) => {
  const server = await scriptedServer(t, (request) =>
    server.requests.length === 1
      ? { ...overloaded, headers: { 'retry-after': '1' } }
      : pushed(request),
  )
  await clientOf(t, server.url).queue('q').push(1)
  const [first, second] = server.requests as [ScriptedRequest, ScriptedRequest]
  const waitedMs = second.atMs - first.atMs
  t.ok(waitedMs >= 1_000 && waitedMs < 1_900, `${waitedMs} ms`)
  t.equal(
    second.body.items[0].transactionId,
    first.body.items[0].transactionId,
    'the same id again',
  )
})

test('a full queue delays only its own pushes', async (t) => {
  const server = await scriptedServer(t, (request) =>
    request.body.items[0].queue === 'full'
      ? {
          status: 429,
          body: { code: 'queue_full', retryable: true },
          headers: { 'retry-after': '1' },
        }
      : pushed(request),
  )
  const rouse = clientOf(t, server.url, { retryFor: '1500ms' })
  const refused = rouse.queue('full').push(1)
  refused.catch(() => {})
  await eventually(() => server.requests.length === 1)
  const begun = performance.now()
  await rouse.queue('other').push(1)
  t.ok(performance.now() - begun < 500)
  await t.rejects(refused, { code: 'queue_full', status: 429, retryable: true })
})

test('calls fail over from a node that disconnects or does not answer', async (t) => {
  const good = await scriptedServer(t, pushed)
  const hangsUp = await scriptedServer(t, () => 'destroy')
  const silent = await scriptedServer(t, () => undefined)
  const urls = [good.url, hangsUp.url, silent.url, 'http://127.0.0.1:1']
  const rouse = clientOf(t, urls, { timeout: '200ms' })
  for (let i = 0; i < 30; i += 1) await rouse.queue('q').push(i)
  t.ok(good.requests.length === 30, 'all were pushed')
  t.ok(hangsUp.requests.length < 10 && silent.requests.length < 5, 'failed nodes are remembered')
})

test('healthy nodes share the calls', async (t) => {
  const servers = await Promise.all([1, 2, 3].map(() => scriptedServer(t, pushed)))
  const rouse = clientOf(
    t,
    servers.map(({ url }) => url),
  )
  for (let i = 0; i < 30; i += 1) await rouse.queue('q').push(i)
  t.same(
    servers.map(({ requests }) => requests.length),
    [10, 10, 10],
  )
})

test('an error of the caller is not retried', async (t) => {
  const problem = {
    code: 'invalid_name',
    detail: 'queue is bad',
    retryable: false,
    requestId: 'r-1',
    node: 'n-1',
    errors: [{ field: 'items[0].queue', message: 'is bad' }],
  }
  const server = await scriptedServer(t, () => ({ status: 400, body: problem }))
  await t.rejects(clientOf(t, server.url).queue('q').push(1), {
    name: 'RouseError',
    code: 'invalid_name',
    message: 'queue is bad',
    status: 400,
    retryable: false,
    requestId: 'r-1',
    node: 'n-1',
    errors: problem.errors,
  })
  t.equal(server.requests.length, 1)
})

test('an unreachable cluster is reported after `retryFor`', async (t) => {
  const rouse = clientOf(t, 'http://127.0.0.1:1', { retryFor: '500ms' })
  const begun = performance.now()
  await t.rejects(rouse.queue('q').push(1), { code: 'unreachable', retryable: true })
  t.ok(performance.now() - begun < 1_500)
})

test('an auto-acknowledging pop is never retried', async (t) => {
  const hangsUp = await scriptedServer(t, () => 'destroy')
  const rouse = clientOf(t, [hangsUp.url, hangsUp.url])
  await t.rejects(rouse.queue('q').pop({ autoAck: true }), { code: 'no_answer' })
  t.equal(hangsUp.requests.length, 1)
})

test('a call refused by a starting node goes to the next one, and its outcome is known', async (t) => {
  const starting = await scriptedServer(t, () => ({
    status: 503,
    body: { code: 'starting', detail: 'waits for a lock', retryable: true },
    headers: { 'retry-after': '1' },
  }))
  const good = await scriptedServer(t, (request) =>
    request.path.endsWith('/push') ? pushed(request) : { status: 204 },
  )
  // A client starts at a random node and then rotates.
  for (const call of ['pop', 'push'] as const) {
    starting.requests.splice(0)
    while (starting.requests.length === 0) {
      const queue = clientOf(t, [starting.url, good.url]).queue('q')
      if (call === 'push') await queue.push(1)
      else t.same(await queue.pop({ autoAck: true }), [])
    }
  }
  t.notOk(
    good.requests.some(({ body }) => 'repeatAfterMs' in body),
    'no push is sent as a repeat',
  )
})

test('a manual ack refused after an unanswered try has an unknown outcome', async (t) => {
  const refused = [{ index: 0, transactionId: 'x', success: false, error: 'lost' }]
  const server = await scriptedServer(t, () =>
    server.requests.length === 1 ? 'destroy' : { status: 200, body: refused },
  )
  const message = { receipt: 'r' } as never
  const queue = clientOf(t, server.url).queue('q')
  await t.rejects(queue.ack(message), { code: 'outcome_unknown' })
  await t.rejects(queue.ack(message), { code: 'lease_lost' }, 'a clear refusal is a lost lease')
})
