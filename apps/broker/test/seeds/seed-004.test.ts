// The testing checklist of seed document 004 (see ARCHITECTURE.md), POP_WAIT, for one node.
// cluster/wakes.test.ts has the part about several nodes.
import { eventually } from '@rouse/testkit'
import { test } from 'tap'
import { startBroker } from '../support/broker.ts'
import { apiOf, send } from '../support/http.ts'
import { countingDatabase, popsOf } from '../support/query-count.ts'
import { sharedBroker, unique } from '../support/shared-broker.ts'

const broker = await sharedBroker()
const api = apiOf(broker.url)

interface GroupStats {
  readonly key: string
  readonly intervalMs: number
  readonly consecutiveEmpty: number
  readonly inFlight: boolean
  readonly waiting: number
}

async function stats(url = broker.url) {
  const { body } = await send('GET', `${url}/stats`)
  return body as {
    local_sidecars: number
    group_backoff: { groups_tracked: number; groups: GroupStats[] }
    mode: { mode: string }
  }
}

async function untilWaiting(queue: string, count: number, url = broker.url): Promise<GroupStats[]> {
  return await eventually(async () => {
    const groups = (await stats(url)).group_backoff.groups.filter(({ key }) =>
      key.startsWith(queue),
    )
    const waiting = groups.reduce((sum, group) => sum + group.waiting, 0)
    const asking = groups.some(({ inFlight }) => inFlight)
    return waiting === count && !asking ? groups : undefined
  })
}

test('a push wakes a waiting pop on a single node without UDP', async (t) => {
  const queue = unique()
  const waiting = api.pop(queue, '?wait=true&timeout=20000')
  await untilWaiting(queue, 1)
  const pushed = performance.now()
  await api.push({ queue, payload: 1 })
  const { status, body } = await waiting
  t.equal(status, 200)
  t.same(body.messages[0].data, 1)
  t.ok(performance.now() - pushed < 2_000, 'long before any fallback poll')
})

test('the polling interval grows after empty polls, and a push resets it', async (t) => {
  const node = await startBroker(t, {
    env: {
      POP_WAIT_BASE_INTERVAL_MS: '20',
      POP_WAIT_MAX_INTERVAL_MS: '320',
      POP_WAIT_IDLE_INTERVAL_MS: '20',
      AGGRESSIVE_POLL_DURATION_MS: '60000',
    },
  })
  const client = apiOf(node.url)
  const waiting = client.pop('slow', '?wait=true&timeout=30000')
  await untilWaiting('slow', 1, node.url)
  // A lost connection counts as a failed query: the node enters aggressive mode, in which the interval grows.
  await node.database.pool
    .query(
      'select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database()',
    )
    .catch(() => {})
  const backedOff = await eventually(
    async () => {
      const { group_backoff: backoff, mode } = await stats(node.url)
      const [group] = backoff.groups.filter(({ key }) => key.startsWith('slow'))
      return group !== undefined && group.intervalMs > 20 ? { group, mode } : undefined
    },
    { timeoutMs: 15_000 },
  )
  t.ok(backedOff.group.consecutiveEmpty >= 3)
  const other = client.pop('slow', '?wait=true&timeout=30000')
  await eventually(async () => (await client.push({ queue: 'slow', payload: 1 })).status === 201)
  await Promise.race([waiting, other])
  const reset = (await stats(node.url)).group_backoff.groups.find(({ key }) =>
    key.startsWith('slow'),
  )
  t.equal(reset?.intervalMs ?? 20, 20)
  await client.push({ queue: 'slow', partition: 'b', payload: 2 })
  await Promise.all([waiting, other])
})

test('the in-flight lock of a wait group keeps two workers from popping it at the same time', async (t) => {
  const database = await countingDatabase(t)
  const node = await startBroker(t, { database, env: { ROUSE_WORKERS: '4' } })
  const client = apiOf(node.url)
  await client.push({ queue: 'one', payload: 0 })
  const waiters = Array.from({ length: 20 }, () => client.pop('two', '?wait=true&timeout=30000'))
  await untilWaiting('two', 20, node.url)
  const before = await popsOf(database)
  const items = Array.from({ length: 20 }, (_, i) => ({
    queue: 'two',
    partition: `p${i}`,
    payload: i,
  }))
  await client.push(...items)
  const answers = await Promise.all(waiters)
  t.ok(answers.every(({ status, body }) => status === 200 && body.messages.length === 1))
  const spent = (await popsOf(database)) - before
  t.ok(spent <= 8, `${spent} pops for 20 waiters on 4 workers`)
})

test('a waiting pop is answered with 204 at its deadline', async (t) => {
  const queue = unique()
  const begun = performance.now()
  const { status, body } = await api.pop(queue, '?wait=true&timeout=700')
  const tookMs = performance.now() - begun
  t.equal(status, 204)
  t.equal(body, undefined)
  t.ok(tookMs >= 695 && tookMs < 1_500, `${tookMs} ms`)
})

test('a waiting pop returns early when there are messages', async (t) => {
  const queue = unique()
  await api.push({ queue, payload: 'there' })
  const begun = performance.now()
  const { body } = await api.pop(queue, '?wait=true&timeout=20000')
  t.equal(body.messages[0].data, 'there')
  t.ok(performance.now() - begun < 5_000)
})

test('waiters of two consumer groups both get the message', async (t) => {
  const queue = unique()
  const waiting = ['a', 'b'].map((group) =>
    api.pop(queue, `?wait=true&timeout=20000&consumerGroup=${group}`),
  )
  await untilWaiting(queue, 2)
  await api.push({ queue, payload: 1 })
  for (const answer of await Promise.all(waiting)) {
    t.equal(answer.status, 200, 'each group gets the message')
    t.equal(answer.body.messages.length, 1)
  }
})

test('a pop that waits for a partition is woken by that partition only', async (t) => {
  const queue = unique()
  const path = `/pop/queue/${queue}/partition`
  const wanted = api.get(`${path}/wanted?wait=true&timeout=20000`)
  const other = api.get(`${path}/other?wait=true&timeout=900`)
  await untilWaiting(queue, 2)
  await api.push({ queue, partition: 'wanted', payload: 1 })
  t.equal((await wanted).body.partition, 'wanted')
  t.equal((await other).status, 204)
})

test('pops with and without wait=true are served at the same time', async (t) => {
  const queue = unique()
  t.equal((await api.pop(queue)).status, 204)
  const waiting = api.pop(queue, '?wait=true&timeout=20000')
  await untilWaiting(queue, 1)
  t.equal((await api.pop(queue)).status, 204, 'without wait=true the answer is immediate')
  await api.push({ queue, partition: 'a', payload: 1 }, { queue, partition: 'b', payload: 2 })
  const first = await waiting
  const second = await eventually(async () => {
    const answer = await api.pop(queue)
    return answer.status === 200 ? answer : undefined
  })
  t.same(new Set([first.body.messages[0].data, second.body.messages[0].data]), new Set([1, 2]))
})

test('many waiters are all answered, each with its own message', async (t) => {
  const queue = unique()
  const count = 200
  const waiting = Array.from({ length: count }, () => api.pop(queue, '?wait=true&timeout=30000'))
  await untilWaiting(queue, count)
  const items = Array.from({ length: count }, (_, i) => ({ queue, partition: `p${i}`, payload: i }))
  await api.push(...items)
  const got = (await Promise.all(waiting)).flatMap(({ body }) =>
    body.messages.map((m: { data: number }) => m.data),
  )
  t.same(
    got.sort((a: number, b: number) => a - b),
    items.map(({ payload }) => payload),
  )
})

test('workers register again after the node restarts', async (t) => {
  const first = await startBroker(t, { env: { ROUSE_WORKERS: '3' } })
  t.equal((await stats(first.url)).local_sidecars, 3)
  await apiOf(first.url).push({ queue: 'kept', payload: 1 })
  t.equal((await first.stop()).code, 0)
  const second = await startBroker(t, { database: first.database, env: { ROUSE_WORKERS: '3' } })
  t.equal((await stats(second.url)).local_sidecars, 3)
  const { body } = await apiOf(second.url).pop('kept', '?wait=true&timeout=10000')
  t.equal(body.messages[0].data, 1)
})
