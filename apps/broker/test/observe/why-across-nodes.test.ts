// The timeline of a message whose push, delivery and ack reach different workers and nodes, for every source of a hint.
import { once } from 'node:events'
import { Agent, type IncomingMessage, request } from 'node:http'
import { text } from 'node:stream/consumers'
import { createMessageIds, isSampled } from '@rouse/protocol'
import { poolExecutor, push } from '@rouse/storage'
import { eventually } from '@rouse/testkit'
import { t as root, type Test, test } from 'tap'
import { idSources } from '../../src/clock.ts'
import { startCluster } from '../support/cluster.ts'
import { type Ackable, ackOf, apiOf, send } from '../support/http.ts'
import { untilWaiting } from '../support/node-state.ts'
import { unique } from '../support/shared-broker.ts'

const timeout = 120_000
const env = { POP_WAIT_IDLE_INTERVAL_MS: '400', ROUSE_WORKERS: '2', ROUSE_WHY_SLOW_MS: '1' }
const [one, two] = await startCluster(root as unknown as Test, { nodes: 2, env })
if (one === undefined || two === undefined) throw new Error('the cluster has two nodes')
const [first, second] = [apiOf(one.url), apiOf(two.url)]

interface Step {
  readonly step: string
  readonly node: string | null
  readonly worker: number | null
  readonly source?: string
  readonly ms: number
}

async function why(id: string, api = first) {
  const { status, body } = await api.get(`/messages/${id}/why`)
  if (status !== 200) throw new Error(JSON.stringify(body))
  return body as {
    readonly state: string
    readonly summary: string
    readonly totalMs: number
    readonly culprit: Record<string, unknown> | null
    readonly spans: readonly { readonly cause: string; readonly ms: number }[]
    readonly steps: readonly Step[]
    readonly recorded: string
    readonly notRecorded: readonly { readonly step: string; readonly text: string }[]
  }
}

/** Sends a request over a connection of its own: the primary gives each new connection to the next worker. */
async function sendFresh(url: string, path: string, body: object): Promise<unknown> {
  const sent = request(`${url}/api/v1${path}`, {
    agent: new Agent({ keepAlive: false }),
    method: 'POST',
    headers: { 'content-type': 'application/json' },
  })
  sent.end(JSON.stringify(body))
  const [response] = (await once(sent, 'response')) as [IncomingMessage]
  const answer: unknown = JSON.parse(await text(response))
  if ((response.statusCode ?? 500) >= 300) throw new Error(JSON.stringify(answer))
  return answer
}

async function ackElsewhere(url: string, message: Ackable, status = 'completed'): Promise<void> {
  await sendFresh(url, '/ack', { ...ackOf(message), status })
}

function stepOf(steps: readonly Step[], name: string): Step {
  const found = steps.find(({ step }) => step === name)
  if (found === undefined) throw new Error(`no ${name} in ${JSON.stringify(steps)}`)
  return found
}

const complete = ['received', 'committed', 'hint', 'grant', 'popped', 'answered', 'acked']

test('push on one node, pop on another, ack through another worker and through the first node', {
  timeout,
}, async (t) => {
  for (const ackedAt of [two, one]) {
    const isOther = async (): Promise<boolean> => {
      const queue = unique()
      await send('PUT', first.at(`/queues/${queue}`), {})
      await second.pop(queue)
      const popped = second.pop(queue, '?wait=true&timeout=20000&consumer=worker-7')
      await untilWaiting(two, queue, 1)
      const id = (await first.push({ queue, payload: 1 })).body[0].id
      await ackElsewhere(ackedAt.url, (await popped).body.messages[0])
      const answers = [await why(id), await why(id, second)]
      const [{ steps }] = answers as [(typeof answers)[0]]
      const [pop, ack] = [stepOf(steps, 'popped'), stepOf(steps, 'acked')]
      if (pop.node === ack.node && pop.worker === ack.worker) return false
      for (const answer of answers) {
        t.match(answer, { state: 'completed', recorded: 'full' })
        t.same(answer.notRecorded, [])
        const names = answer.steps.map(({ step }) => step)
        t.same(names.toSorted(), complete.toSorted(), JSON.stringify(answer))
        t.match(stepOf(answer.steps, 'received'), { node: 'node-1' })
        t.match(stepOf(answer.steps, 'popped'), { node: 'node-2', consumer: 'worker-7' })
        t.match(stepOf(answer.steps, 'acked'), { node: ackedAt === one ? 'node-1' : 'node-2' })
        t.notOk(
          answer.spans.some(({ cause }) => cause === 'unknown'),
          JSON.stringify(answer),
        )
      }
      return true
    }
    await eventually(isOther, { timeoutMs: 30_000 })
  }
})

test('a partition held by a lease that was acked through another node', { timeout }, async (t) => {
  const queue = unique()
  const holder = (await first.push({ queue, payload: 1, partition: 'p' })).body[0].id
  const held = (await first.pop(queue, '?consumer=worker-7')).body.messages[0]
  const id = (await first.push({ queue, payload: 2, partition: 'p' })).body[0].id
  const popped = second.pop(queue, '?wait=true&timeout=20000&consumer=worker-8')
  await eventually(async () => (await why(id)).totalMs > 300)
  await ackElsewhere(two.url, held)
  await ackElsewhere(one.url, (await popped).body.messages[0])
  for (const api of [first, second]) {
    const answer = await why(id, api)
    t.match(answer.culprit, {
      cause: 'partition_held',
      text: 'partition held by message 1, attempt 1, consumer worker-7',
      id: holder,
    })
    t.ok(Number(answer.culprit?.ms) >= 250, JSON.stringify(answer))
    t.match(answer.summary, /^[\d.]+ m?s: partition held by message 1, .*; .*: everything else$/)
  }
})

test('every source of a hint is named', { timeout }, async (t) => {
  /** Starts a pop, then does something that makes a message, until the hint has this source. */
  const until = async (
    source: string,
    node: typeof one,
    make: (queue: string) => Promise<string | undefined>,
  ): Promise<void> => {
    const seen: string[] = []
    const isSource = async (): Promise<boolean> => {
      const queue = unique()
      const api = apiOf(node.url)
      await send('PUT', api.at(`/queues/${queue}`), {})
      await api.pop(queue)
      const popped = api.pop(queue, '?wait=true&timeout=20000')
      await untilWaiting(node, queue, 1)
      const made = await make(queue)
      const message = (await popped).body.messages[0]
      await ackElsewhere(node.url, message)
      const { steps } = await why(made ?? message.id)
      const hint = stepOf(steps, 'hint')
      seen.push(String(hint.source))
      t.ok(hint.ms <= stepOf(steps, 'grant').ms, `${source}: the hint comes before the grant`)
      t.ok(
        stepOf(steps, 'popped').ms <= stepOf(steps, 'acked').ms,
        `${source}: and the pop before the ack`,
      )
      return hint.source === source
    }
    await eventually(isSource, { timeoutMs: 20_000 })
    t.ok(seen.includes(source), `${source}: ${seen.join(' ')}`)
  }
  let turn = 0
  const pushed = async (queue: string): Promise<string> => {
    // Each round opens two connections, for two workers: another one every other time, so that both get a push.
    turn += 1
    if (turn % 2 === 0) await sendFresh(one.url, '/push', { items: [] })
    const items = [{ queue, payload: 1 }]
    const [stored] = (await sendFresh(one.url, '/push', { items })) as [{ readonly id: string }]
    return stored.id
  }
  await until('local', one, pushed)
  await until('ipc', one, pushed)
  await until('udp', two, pushed)
  await until('timer', one, async (queue) => {
    return (await first.push({ queue, payload: 1, delayMs: 100 })).body[0].id
  })
  await until('notify', one, async (queue) => {
    await one.database.pool.query('select rouse.enqueue($1, $2)', [queue, '1'])
    return undefined
  })
  await until('fallback', one, async (queue) => {
    // A commit without a hint, as of a node that died after it.
    const item = { queue, id: createMessageIds(idSources)(), payload: '1' }
    const { items } = await push(poolExecutor(one.database.pool), [item])
    return items[0]?.messageId as string
  })
})

test('an expired lease and a retry are in the timeline, with their consumers', {
  timeout,
}, async (t) => {
  const queue = unique()
  await send('PUT', first.at(`/queues/${queue}`), {
    options: { retryBackoffMs: [300], retryLimit: 5 },
  })
  const id = (await first.push({ queue, payload: 1 })).body[0].id
  await first.pop(queue, '?consumer=worker-1&leaseSeconds=1')
  const again = (await second.pop(queue, '?wait=true&timeout=20000&consumer=worker-2')).body
    .messages[0]
  t.equal(again.attempt, 2)
  const held = (await why(id)).spans.find(({ cause }) => cause === 'slow_consumer')
  t.match(held, { text: 'attempt 1 by worker-1, until its lease expired' })
  await ackElsewhere(one.url, again, 'failed')
  const third = (await first.pop(queue, '?wait=true&timeout=20000')).body.messages[0]
  t.equal(third.attempt, 3)
  await ackElsewhere(two.url, third)
  const { spans, steps, notRecorded } = await why(id, second)
  const causes = spans.map(({ cause }) => cause)
  t.ok(causes.includes('retry_delay'), causes.join(' '))
  t.match(stepOf(steps, 'expired'), { text: /attempt 1 by worker-1 ended as expired/ })
  t.match(stepOf(steps, 'failed'), { text: /attempt 2 by worker-2 ended as failed/ })
  t.match(steps.at(-1), { step: 'acked', node: 'node-2', attempt: 3 })
  t.same(notRecorded, [])
})

test('what is not recorded is said, not guessed', { timeout }, async (t) => {
  const queue = unique()
  await send('PUT', first.at(`/queues/${queue}`), {})
  await first.pop(queue)
  await one.database.pool.query('select rouse.enqueue($1, $2)', [queue, '1'])
  const popped = (await first.pop(queue, '?wait=true&timeout=20000&consumer=w')).body.messages[0]
  // Acknowledged in SQL: no node sees it.
  await one.database.pool.query('select rouse.ack_in($1)', [popped.receipt])
  const answer = await why(popped.id)
  t.equal(answer.state, 'completed')
  t.equal(answer.recorded, 'partly')
  const missing = answer.notRecorded.map(({ step }) => step)
  t.ok(
    missing.includes('received') && missing.includes('acked'),
    JSON.stringify(answer.notRecorded),
  )
  for (const missing of answer.notRecorded) t.match(missing.text, /^not recorded: when /)
  t.match(answer.summary, /; not recorded: when attempt 1 of w was acknowledged/)
  t.notOk(answer.steps.some(({ step }) => step === 'acked'))
})

test('a message of the sample is recorded on all nodes, however fast it was', {
  timeout,
}, async (t) => {
  const [slow, other] = await startCluster(t, {
    nodes: 2,
    env: { ...env, ROUSE_WHY_SLOW_MS: '60000' },
  })
  if (slow === undefined || other === undefined) throw new Error('the cluster has two nodes')
  const [pushing, popping] = [apiOf(slow.url), apiOf(other.url)]
  const queue = unique()
  const items = Array.from({ length: 100 }, (_, i) => ({
    queue,
    payload: i,
    partition: `p${i % 7}`,
  }))
  const ids = ((await pushing.push(...items)).body as { id: string }[]).map(({ id }) => id)
  const acked = new Set<string>()
  while (acked.size < ids.length) {
    const { messages } = (await popping.pop(queue, '?wait=true&timeout=5000&batch=20')).body
    const acknowledgments = messages.map((message: Ackable) => ackOf(message))
    await sendFresh(slow.url, '/ack/batch', { acknowledgments })
    for (const { id } of messages) acked.add(id)
  }
  const sampled = ids.filter(isSampled)
  t.ok(sampled.length > 0)
  for (const id of sampled) {
    t.match((await popping.get(`/messages/${id}/why`)).body, { recorded: 'full', notRecorded: [] })
  }
  const unsampled = ids.find((id) => !isSampled(id)) as string
  t.match((await popping.get(`/messages/${unsampled}/why`)).body.notRecorded, [
    { step: 'received', text: /1 message in 16/ },
  ])
})
