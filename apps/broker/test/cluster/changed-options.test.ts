// Queue options changed through one worker of one node apply to all workers of all nodes, and to requests in
// progress.
import { randomBytes } from 'node:crypto'
import { eventually, type TestDatabase, testDatabase } from '@rouse/testkit'
import { type Test, test } from 'tap'
import type { RunningBroker } from '../support/broker.ts'
import { startCluster, startNode, statsOf, untilAllHeard } from '../support/cluster.ts'
import { apiOf, send } from '../support/http.ts'
import { stateOf } from '../support/node-state.ts'

const timeout = 120_000
/** Concurrent pushes use several connections, which the workers of a node accept in turn. */
const pushesAtOnce = 8
/** The longest time until a notification arrives: shorter than a worker caches options without one. */
const toldMsMax = 8_000

type Api = ReturnType<typeof apiOf>

async function startPair(t: Test) {
  const env = { ROUSE_ENCRYPTION_KEY: randomBytes(32).toString('base64') }
  const [a, b] = await startCluster(t, { nodes: 2, env })
  if (a === undefined || b === undefined) throw new Error('two nodes')
  return { a: apiOf(a.url), b: apiOf(b.url), database: a.database }
}

let pushed = 0

/** Makes a few pushes; returns how many of them are stored unencrypted. */
async function storedInTheClear({ pool }: TestDatabase, api: Api): Promise<number> {
  const payloads = Array.from({ length: pushesAtOnce }, () => {
    pushed += 1
    return `push ${pushed}`
  })
  const answers = await Promise.all(payloads.map((payload) => api.push({ queue: 'q', payload })))
  if (answers.some(({ status }) => status !== 201)) throw new Error(JSON.stringify(answers))
  const texts = payloads.map((payload) => JSON.stringify(payload))
  const sql = 'select from rouse.messages where payload = any ($1)'
  return (await pool.query(sql, [texts])).rowCount ?? 0
}

test('every worker stops encrypting a queue when its encryption is switched off', {
  timeout,
}, async (t) => {
  const { a, b, database } = await startPair(t)
  const inTheClear = (api: Api) => storedInTheClear(database, api)
  const encrypt = (encryptionEnabled: boolean) =>
    a.post('/configure', { queue: 'q', options: { encryptionEnabled } })

  await encrypt(true)
  t.equal(await inTheClear(a), 0)
  t.equal(await inTheClear(b), 0, 'every worker has seen the encrypted queue')
  await encrypt(false)
  for (const [which, api] of Object.entries({ a, b })) {
    const isAll = async () => (await inTheClear(api)) === pushesAtOnce
    await t.resolves(eventually(isAll, { timeoutMs: toldMsMax }), `node ${which} was notified`)
  }

  await t.test(
    'an option changed directly in the database applies soon, without a notification',
    async (t) => {
      await encrypt(true)
      t.equal(await inTheClear(b), 0)
      const options = JSON.stringify({ encryptionEnabled: false })
      await database.pool.query(`select rouse.configure('q', null, null, $1)`, [options])
      for (const api of [a, b]) {
        const isAll = async () => (await inTheClear(api)) === pushesAtOnce
        await t.resolves(eventually(isAll, { timeoutMs: 30_000, intervalMs: 250 }))
      }
    },
  )
})

/** An interval of fallback polls that is too long for a poll to have woken a waiter. */
const never = '600000'
const hintsOnly = {
  POP_WAIT_IDLE_INTERVAL_MS: never,
  POP_WAIT_BASE_INTERVAL_MS: never,
  POP_WAIT_MAX_INTERVAL_MS: never,
  ROUSE_WRITE_TIMEOUT_MS: '60000',
}

const wakesOf = async ({ url }: RunningBroker) => {
  const { wakes } = await statsOf(url)
  return Object.values(wakes).reduce((sum, count) => sum + count, 0)
}

async function untilNothingInFlight(node: RunningBroker): Promise<void> {
  await eventually(async () => (await stateOf(node)).group_backoff.groups_in_flight === 0)
}

/** On each node, a pop waits for a namespace without queues. Its group has consumed all messages. */
async function waitForNamespace(t: Test) {
  const database = await testDatabase(t)
  const nodes = await startCluster(t, { nodes: 2, database, env: hintsOnly })
  const api = apiOf(nodes[0]?.url as string)
  await api.post('/configure', { queue: 'q', namespace: 'old', task: 'mail' })
  await api.push({ queue: 'q', payload: 'before' })
  const waiting = []
  for (const [i, node] of nodes.entries()) {
    await api.pop('q', `?autoAck=true&consumerGroup=g${i}`)
    const path = `/pop?namespace=new&wait=true&timeout=60000&autoAck=true&consumerGroup=g${i}`
    waiting.push(apiOf(node.url).get(path))
    await eventually(async () => (await statsOf(node.url)).waiting.total === 1)
    await untilNothingInFlight(node)
  }
  return { database, nodes, api, waiting }
}

test('a push in progress wakes waiters of the namespace that its queue moves to', {
  timeout,
}, async (t) => {
  const { database, nodes, api, waiting } = await waitForNamespace(t)
  const barrier = await database.armBarrier('push-inserted')
  const pushed = api.push({ queue: 'q', payload: 'x' })
  await barrier.reached()
  const before = await Promise.all(nodes.map(wakesOf))
  await api.post('/configure', { queue: 'q', namespace: 'new' })
  for (const [i, node] of nodes.entries()) {
    await eventually(async () => (await wakesOf(node)) > (before[i] as number))
    await untilNothingInFlight(node)
  }
  await barrier.release()
  t.equal((await pushed).status, 201)
  for (const answer of waiting) {
    t.match(await answer, { status: 200, body: { messages: [{ data: 'x' }] } })
  }
  for (const node of nodes) {
    const { wakes, mode } = await stateOf(node)
    t.equal(wakes.fallback, 0, 'hints woke both waiters')
    t.equal(mode.mode, 'healthy', 'no node treats the move as a fault')
  }
})

test('nodes with different queue defaults log a warning; new queues get those of the last node that started', {
  timeout,
}, async (t) => {
  const first = await startNode(t, 0, { env: { ROUSE_DEFAULT_TTL: '60' } })
  const { database } = first
  const a = apiOf(first.url)
  await a.push({ queue: 'before', payload: 1 })
  const env = { ROUSE_DEFAULT_TTL: '90', ROUSE_DEFAULT_ORDERING: 'none' }
  const second = await startNode(t, 1, { database, env })
  const b = apiOf(second.url)
  await untilAllHeard([first, second])

  const optionsOf = async (api: Api, queue: string) =>
    (await api.get(`/resources/queues/${queue}`)).body.options
  t.match(await optionsOf(b, 'before'), { ttl: 60, ordering: 'keyed' })
  await b.post('/configure', { queue: 'before', options: { priority: 1 } })
  t.match(await optionsOf(a, 'before'), { ttl: 60, ordering: 'keyed', priority: 1 })
  await a.push({ queue: 'after', payload: 1 })
  t.match(await optionsOf(a, 'after'), { ttl: 90, ordering: 'none' })

  const warned = (node: RunningBroker) =>
    node.log.find(
      ({ level, msg }) => level === 'warn' && /different queue defaults/.test(String(msg)),
    )
  await eventually(async () => warned(first) !== undefined && warned(second) !== undefined, {
    timeoutMs: 30_000,
  })
  t.match(warned(first), {
    peer: 'node-2',
    differences: { ttl: { here: 60, there: 90 }, ordering: { here: null, there: 'none' } },
  })
  t.match(warned(second), { peer: 'node-1', differences: { ttl: { here: 90, there: 60 } } })
  t.match((await send('GET', `${first.url}/stats`)).body, { queue_defaults: { ttl: 60 } })
})
