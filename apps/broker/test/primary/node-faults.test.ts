// A fault of a worker, a client or PostgreSQL does not affect the other parts of a node.
import { Agent, request } from 'node:http'
import { connect } from 'node:net'
import { startEmbeddedPostgres } from '@rouse/database'
import { eventually, type TestDatabase } from '@rouse/testkit'
import { type Test, test } from 'tap'
import { startBroker } from '../support/broker.ts'
import { type Ackable, apiOf, send } from '../support/http.ts'
import { childrenOf } from '../support/process-tree.ts'

/** A worker starts in a second, unless every core is busy with other tests. */
const patience = { timeoutMs: 30_000 }

/** Repeats a failed request: fetch may have tried a connection of the dead worker, and sent nothing. */
async function afterClose<T>(ask: () => Promise<T>): Promise<T> {
  return await ask().catch(() => ask())
}

/** Opens a connection that stays open. The primary has chosen the worker that serves it. */
function connectionTo(t: Test, url: string) {
  const agent = new Agent({ keepAlive: true, maxSockets: 1 })
  t.teardown(() => agent.destroy())
  // biome-ignore lint/suspicious/noExplicitAny: the tests look into answers of every shape
  return (method: string, path: string, body?: unknown): Promise<any> =>
    new Promise((resolve, reject) => {
      const headers = body === undefined ? {} : { 'content-type': 'application/json' }
      const asked = request(`${url}${path}`, { agent, method, headers }, (answer) => {
        const chunks: Buffer[] = []
        answer.on('data', (chunk: Buffer) => chunks.push(chunk))
        answer.on('end', () => resolve(JSON.parse(Buffer.concat(chunks).toString())))
      })
      asked.on('error', reject)
      asked.end(body === undefined ? undefined : JSON.stringify(body))
    })
}

test('a killed worker loses no message and does not disturb the other worker', async (t) => {
  const node = await startBroker(t)
  const api = apiOf(node.url)
  await api.post('/configure', { queue: 'q', options: { leaseTime: 1 } })
  await api.push({ queue: 'q', payload: 'held' })
  const held = await api.pop('q')
  t.equal(held.status, 200)
  const waiting = Array.from({ length: 20 }, () =>
    api.pop('other', '?wait=true&timeout=20000').catch(() => undefined),
  )
  await eventually(async () => {
    const { body } = await send('GET', `${node.url}/stats`)
    const groups = body.group_backoff.groups as { waiting: number }[]
    return groups.reduce((sum, group) => sum + group.waiting, 0) === 20
  }, patience)
  const [victim] = childrenOf(node.child.pid as number)
  process.kill(victim as number, 'SIGKILL')
  await eventually(async () => {
    const { body } = await send('GET', `${node.url}/stats`).catch(() => ({ body: undefined }))
    return body?.local_sidecars === 2 && body.group_backoff.groups_in_flight === 0
  }, patience)
  // Waiters of the surviving worker get responses. Clients of the killed worker lose their connection and
  // retry.
  const items = Array.from({ length: 20 }, (_, i) => ({
    queue: 'other',
    partition: `p${i}`,
    payload: i,
  }))
  t.equal((await afterClose(() => api.push(...items))).status, 201)
  const settled = await Promise.all(waiting)
  const lost = settled.filter((answer) => answer === undefined).length
  const again = await Promise.all(
    Array.from({ length: lost }, () =>
      afterClose(() => api.pop('other', '?wait=true&timeout=20000')),
    ),
  )
  const answered = [...settled, ...again].filter((answer) => answer?.status === 200)
  t.equal(answered.length, 20, 'every message was delivered')
  const redelivered = await afterClose(() => api.pop('q', '?wait=true&timeout=10000'))
  t.match(
    redelivered.body.messages,
    [{ data: 'held', attempt: 2 }],
    'redelivered when its lease expired',
  )
})

test('a stalled primary does not count the answer of a worker as late', async (t) => {
  const timeoutMs = 4_000
  const node = await startBroker(t, { env: { NOTIFY_DELIVERY_TIMEOUT_MS: String(timeoutMs) } })
  const primary = node.child.pid as number
  // Not a direct delivery: the message must come by a grant.
  const waiting = apiOf(node.url).pop('q', '?wait=true&timeout=60000&autoAck=true')
  // Open the connections before the primary is stopped, because it distributes them. Each worker gets some.
  const connections = Array.from({ length: 4 }, () => connectionTo(t, node.url))
  const holder = await eventually(async () => {
    const answers = await Promise.all(connections.map((ask) => ask('GET', '/stats')))
    if (answers.some(({ group_backoff: { groups_in_flight } }) => groups_in_flight !== 0)) return
    return Object.entries(answers[0].waiting.by_worker).find(([, count]) => count === 1)?.[0]
  })
  const ready = node.log.find((entry) => {
    return entry.msg === 'worker is ready' && entry.worker === Number(holder)
  })
  const worker = ready?.workerPid as number
  t.teardown(() => {
    for (const pid of [worker, primary]) process.kill(pid, 'SIGCONT')
  })
  process.kill(worker, 'SIGSTOP')
  const pushes = connections.map(async (ask) => {
    await ask('POST', '/api/v1/push', { items: [{ queue: 'q', payload: 1 }] })
    return ask
  })
  const other = await Promise.any(pushes)
  await eventually(async () => (await other('GET', '/stats')).group_backoff.groups_in_flight === 1)
  const granted = performance.now()
  process.kill(primary, 'SIGSTOP')
  process.kill(worker, 'SIGCONT')
  t.equal((await waiting).status, 200, 'the worker took the grant and reported it')
  await eventually(() => performance.now() - granted > timeoutMs + 500, { timeoutMs: 10_000 })
  process.kill(primary, 'SIGCONT')
  const { counters, mode } = await eventually(async () => {
    const now = await other('GET', '/stats')
    return now.group_backoff.groups_in_flight === 0 ? now : undefined
  })
  t.equal(counters.deliveryTimeouts, 0)
  t.equal(mode.mode, 'healthy')
})

test('messages popped for forty clients that disconnect meanwhile are not lost', async (t) => {
  const node = await startBroker(t)
  const api = apiOf(node.url)
  await api.post('/configure', { queue: 'q', options: { leaseTime: 2 } })
  const items = Array.from({ length: 40 }, (_, i) => ({
    queue: 'q',
    partition: `p${i}`,
    payload: i,
  }))
  await api.push(...items)
  await Promise.all(
    items.map(
      () =>
        new Promise<void>((resolve) => {
          const leaving = request(`${node.url}/api/v1/pop/queue/q?wait=true`)
          leaving.on('error', () => resolve())
          leaving.end(() => setImmediate(() => leaving.destroy()))
        }),
    ),
  )
  const attempts = new Map<unknown, number>()
  await eventually(
    async () => {
      const { status, body } = await api.pop('q', '?batch=100&partitions=100')
      if (status !== 200) return false
      for (const { data, attempt } of body.messages) {
        if (!attempts.has(data)) attempts.set(data, attempt as number)
      }
      return attempts.size === 40
    },
    { timeoutMs: 30_000 },
  )
  // Messages of a response that was already sent cannot be released: they wait for the end of the lease and
  // are charged.
  const givenBack = [...attempts.values()].filter((attempt) => attempt === 1).length
  t.ok(givenBack >= 20, `${givenBack} of 40 were released at once, uncharged`)
})

test('a proxy that resets the connection after the response ends no lease', async (t) => {
  const node = await startBroker(t)
  const api = apiOf(node.url)
  for (let i = 0; i < 20; i += 1) {
    await api.push({ queue: 'q', payload: i })
    const message = await popAndReset(node.url, 'q')
    t.equal((await api.ack(message)).status, 200)
  }
})

/** Reads the whole response, then resets the connection, as HAProxy does. */
async function popAndReset(url: string, queue: string): Promise<Ackable> {
  const { hostname, port } = new URL(url)
  const socket = connect(Number(port), hostname)
  socket.write(`GET /api/v1/pop/queue/${queue} HTTP/1.1\r\nhost: localhost\r\n\r\n`)
  let text = ''
  await new Promise<void>((resolve) => {
    socket.on('data', (bytes: Buffer) => {
      text += bytes.toString()
      const [head = '', body = ''] = text.split('\r\n\r\n')
      if (Buffer.byteLength(body) >= Number(/content-length: (\d+)/i.exec(head)?.[1])) resolve()
    })
  })
  socket.resetAndDestroy()
  return JSON.parse(text.slice(text.indexOf('\r\n\r\n'))).messages[0] as Ackable
}

test('killing PostgreSQL under load loses no acknowledged push, and waiters keep waiting', async (t) => {
  const server = await startEmbeddedPostgres({ settings: { fsync: 'on' } })
  t.teardown(() => server.stop())
  const database = { url: server.url } as TestDatabase
  const node = await startBroker(t, { database })
  const api = apiOf(node.url)
  const acknowledged: number[] = []
  const odd: number[] = []
  let next = 0
  let pushing = true
  const producers = Array.from({ length: 4 }, async () => {
    while (pushing) {
      const payload = next++
      const answer = await api.push({ queue: 'q', partition: `p${payload % 5}`, payload })
      if (answer.status === 201) acknowledged.push(payload)
      else if (answer.status !== 503) odd.push(answer.status)
      else await new Promise((resolve) => setImmediate(resolve))
    }
  })
  await eventually(() => acknowledged.length > 100)
  const waiting = api.pop('late', '?wait=true&timeout=30000')
  server.kill('SIGKILL')
  const restarted = await startEmbeddedPostgres({ dataDir: server.dataDir, port: server.port })
  t.teardown(() => restarted.stop())
  const backAt = performance.now()
  const before = acknowledged.length
  await eventually(() => acknowledged.length > before, { timeoutMs: 10_000, intervalMs: 5 })
  const backMs = performance.now() - backAt
  t.ok(backMs < 2_000, `pushes went through ${backMs} ms after PostgreSQL was back`)
  pushing = false
  await Promise.all(producers)
  t.same(odd, [], 'no answer but 201 and 503')
  // Each worker reconnects separately, so one successful push does not mean that all succeed.
  await eventually(
    async () => (await api.push({ queue: 'late', payload: 'came' })).status === 201,
    patience,
  )
  t.equal((await waiting).body.messages[0].data, 'came', 'the waiter waited through the crash')
  t.equal(node.child.exitCode, null, 'the node did not exit')

  const got = new Set<number>()
  await eventually(async () => {
    const { status, body } = await api.pop('q', '?batch=1000&partitions=10&autoAck=true')
    if (status === 200) for (const { data } of body.messages) got.add(data as number)
    return status === 204
  })
  const lost = acknowledged.filter((payload) => !got.has(payload))
  t.same(lost, [], `${acknowledged.length} acknowledged pushes, none lost`)
})

test('a drain answers waiting pops, closes connections, and exits with code 0', async (t) => {
  const node = await startBroker(t)
  const api = apiOf(node.url)
  const waiting = Array.from({ length: 30 }, () => api.pop('q', '?wait=true&timeout=60000'))
  await eventually(async () => {
    const { body } = await send('GET', `${node.url}/stats`)
    return (body.group_backoff.groups as { waiting: number }[])[0]?.waiting === 30
  })
  const begun = performance.now()
  const { code } = await node.stop()
  t.equal(code, 0)
  t.ok(performance.now() - begun < 10_000)
  for (const { status, headers } of await Promise.all(waiting)) {
    t.equal(status, 204)
    t.equal(headers.get('connection'), 'close')
  }
})
