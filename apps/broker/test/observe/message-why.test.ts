// Why one message took long, for each cause, on two real nodes.
import { createMessageIds } from '@rouse/protocol'
import { poolExecutor, push } from '@rouse/storage'
import { eventually } from '@rouse/testkit'
import { t as root, type Test, test } from 'tap'
import { idSources } from '../../src/clock.ts'
import { startCluster } from '../support/cluster.ts'
import { apiOf, send } from '../support/http.ts'
import { untilWaiting } from '../support/node-state.ts'
import { unique } from '../support/shared-broker.ts'

const timeout = 60_000
const env = { ROUSE_WHY_SLOW_MS: '100', POP_WAIT_IDLE_INTERVAL_MS: '400', ROUSE_WORKERS: '2' }
const [one, two] = await startCluster(root as unknown as Test, { nodes: 2, env })
if (one === undefined || two === undefined) throw new Error('the cluster has two nodes')
const [first, second] = [apiOf(one.url), apiOf(two.url)]

async function why(id: string, api = first) {
  const { status, body } = await api.get(`/messages/${id}/why`)
  if (status !== 200) throw new Error(JSON.stringify(body))
  return body
}

/** Resolves when the message has waited long enough for its delay to be recorded. */
async function untilSlow(id: string, ms = 250): Promise<void> {
  await eventually(async () => (await why(id)).totalMs > ms)
}

async function pushOne(queue: string, item: object = {}, api = first): Promise<string> {
  return (await api.push({ queue, payload: 1, ...item })).body[0].id
}

/** The ack is in the answer at once, whichever worker and node it went through. */
async function whyEnded(id: string, api = first) {
  const body = await why(id, api)
  const steps = body.steps.map(({ step }: { step: string }) => step)
  if (!steps.includes('acked')) throw new Error(`no ack in ${JSON.stringify(body)}`)
  return body
}

/** The spans of an answer are complete and do not overlap. */
function checkSpans(t: Test, body: Awaited<ReturnType<typeof why>>): void {
  const spans = body.spans as { from: string; to: string; ms: number }[]
  const sum = spans.reduce((total, { ms }) => total + ms, 0)
  t.ok(Math.abs(sum - body.totalMs) < 2, `${sum} of ${body.totalMs}: ${JSON.stringify(spans)}`)
  for (const [i, { from }] of spans.entries()) {
    if (i > 0) t.equal(from, spans[i - 1]?.to)
  }
}

test('a partition held by another message, with its consumer', { timeout }, async (t) => {
  const queue = unique()
  const holder = await pushOne(queue, { partition: 'p' })
  const held = (await first.pop(queue, '?consumer=worker-7')).body.messages[0]
  const id = await pushOne(queue, { partition: 'p' })
  const popped = second.pop(queue, '?wait=true&timeout=20000&consumer=worker-8')
  await untilSlow(id)
  const before = await why(id, second)
  t.match(before.culprit, { cause: 'partition_held', consumer: 'worker-7', attempt: 1 })
  await first.ack(held)
  await second.ack((await popped).body.messages[0])
  for (const api of [first, second]) {
    const after = await whyEnded(id, api)
    t.match(after, {
      state: 'completed',
      culprit: {
        cause: 'partition_held',
        seq: 1,
        attempt: 1,
        consumer: 'worker-7',
        id: holder,
        action: /onFailure/,
      },
      unreachable: [],
    })
    t.match(
      after.summary,
      /^\d.* m?s: partition held by message 1, attempt 1, consumer worker-7; .* everything else$/,
    )
    const steps = after.steps.map(({ step }: { step: string }) => step)
    t.same(steps.slice(steps.indexOf('committed')), [
      'committed',
      'hint',
      'grant',
      'popped',
      'answered',
      'acked',
    ])
    t.equal(after.steps.at(-1).node, 'node-2')
    checkSpans(t, after)
  }
})

test('a failed message that holds its partition until its retry', { timeout }, async (t) => {
  const queue = unique()
  await send('PUT', first.at(`/queues/${queue}`), {
    options: { retryBackoffMs: [400], retryLimit: 5 },
  })
  await pushOne(queue, { partition: 'p' })
  const id = await pushOne(queue, { partition: 'p' })
  const failing = (await first.pop(queue, '?consumer=worker-7')).body.messages[0]
  await first.ack(failing, 'failed', { error: 'no', errorCode: 'E42' })
  const again = (await first.pop(queue, '?wait=true&timeout=20000&batch=1')).body.messages[0]
  t.equal(again.attempt, 2)
  await first.ack(again)
  await first.ack((await first.pop(queue, '?wait=true&timeout=20000')).body.messages[0])
  const { culprit, summary } = await whyEnded(id)
  t.match(culprit, { cause: 'partition_held', seq: 1, attempt: 1, errorCode: 'E42' })
  t.match(summary, /waits for its retry after attempt 1 \(E42\)/)
})

test('no consumer', { timeout }, async (t) => {
  const queue = unique()
  const id = await pushOne(queue)
  await untilSlow(id)
  t.match((await why(id)).culprit, { cause: 'no_consumer', text: /no consumer group/ })
  await second.ack((await second.pop(queue)).body.messages[0])
  const next = await pushOne(queue)
  await untilSlow(next)
  t.match((await why(next)).culprit, { cause: 'no_consumer', text: /no consumer is waiting/ })
  await second.ack((await second.pop(queue)).body.messages[0])
  const body = await whyEnded(next)
  t.match(body.culprit, { cause: 'no_consumer', action: /consumers/ })
  checkSpans(t, body)
})

test('a paused queue', { timeout }, async (t) => {
  const queue = unique()
  await send('PUT', first.at(`/queues/${queue}`), {})
  await first.pop(queue)
  await first.post(`/queues/${queue}/pause`)
  const id = await pushOne(queue)
  const popped = second.pop(queue, '?wait=true&timeout=20000')
  await untilSlow(id)
  t.match((await why(id)).culprit, { cause: 'paused', action: 'Resume the queue.' })
  await first.post(`/queues/${queue}/resume`)
  await second.ack((await popped).body.messages[0])
  const body = await whyEnded(id, second)
  t.match(body.culprit, { cause: 'paused' })
  checkSpans(t, body)
})

test('a rate of the queue', { timeout }, async (t) => {
  const queue = unique()
  await send('PUT', first.at(`/queues/${queue}`), { options: { rate: { limit: 1, perMs: 500 } } })
  await pushOne(queue)
  const id = await pushOne(queue)
  const pop = () => first.pop(queue, '?wait=true&timeout=20000&batch=1')
  await first.ack((await pop()).body.messages[0])
  await first.ack((await pop()).body.messages[0])
  t.match((await whyEnded(id)).culprit, { cause: 'rate_limit' })
})

test('maxInFlight', { timeout }, async (t) => {
  const queue = unique()
  await send('PUT', first.at(`/queues/${queue}`), { options: { maxInFlight: 1 } })
  await pushOne(queue, { partition: 'a' })
  const held = (await first.pop(queue)).body.messages[0]
  const id = await pushOne(queue, { partition: 'b' })
  const popped = second.pop(queue, '?wait=true&timeout=20000')
  await untilSlow(id)
  t.match((await why(id)).culprit, { cause: 'in_flight_limit' })
  await first.ack(held)
  await second.ack((await popped).body.messages[0])
  t.match((await whyEnded(id)).culprit, { cause: 'in_flight_limit', text: /maxInFlight/ })
})

test('a delayed message', { timeout }, async (t) => {
  const queue = unique()
  await first.pop(queue)
  const popped = first.pop(queue, '?wait=true&timeout=20000')
  const id = await pushOne(queue, { delayMs: 400 })
  t.match((await why(id)).spans.at(-1), { cause: 'scheduled', text: /^delayed until / })
  await first.ack((await popped).body.messages[0])
  // The database knows both times: a message that was delivered when it was due is not recorded as slow.
  const body = await why(id)
  t.match(body, { state: 'completed', culprit: { cause: 'scheduled' } })
  t.ok(body.steps.some(({ step }: { step: string }) => step === 'due'))
})

test('a slow consumer, while it has the message and after its ack', { timeout }, async (t) => {
  const queue = unique()
  const id = await pushOne(queue)
  const held = (await second.pop(queue, '?consumer=worker-9')).body.messages[0]
  await untilSlow(id)
  t.match((await why(id)).culprit, { cause: 'slow_consumer', consumer: 'worker-9', attempt: 1 })
  await first.ack(held, 'failed')
  t.match((await why(id)).culprit, { cause: 'slow_consumer', consumer: 'worker-9' })
})

test('a lost hint: a fallback poll found the message', { timeout }, async (t) => {
  const queue = unique()
  await pushOne(queue, { partition: 'p' })
  await first.ack((await first.pop(queue)).body.messages[0])
  const popped = first.pop(queue, '?wait=true&timeout=20000')
  await untilWaiting(one, queue, 1)
  // A commit without a hint, as of a node that died after it.
  const item = { queue, partition: 'p', id: createMessageIds(idSources)(), payload: '1' }
  const { items } = await push(poolExecutor(one.database.pool), [item])
  const id = items[0]?.messageId as string
  await first.ack((await popped).body.messages[0])
  const body = await whyEnded(id)
  const late = body.spans.find(({ cause }: { cause: string }) => cause === 'late_wake')
  t.match(late, { source: 'fallback', text: /no hint came: a fallback poll found the message/ })
})

test('unknown messages and groups are not there', { timeout }, async (t) => {
  t.match(await first.get('/messages/0190a1b2-0000-7000-8000-000000000000/why'), { status: 404 })
  t.match(await first.get('/messages/x/why'), { status: 404 })
  const id = await pushOne(unique())
  t.match(await first.get(`/messages/${id}/why?consumerGroup=none`), { status: 404 })
  t.match(await first.get(`/messages/${id}/why?group=x`), { status: 400 })
})
