// A push on any node wakes waiters on every node. Checks the items about several nodes of
// seed document 004 (see ARCHITECTURE.md).
import { GossipNode, type Hint } from '@rouse/gossip'
import { joinCluster } from '@rouse/storage'
import { eventually, type TestDatabase, testDatabase } from '@rouse/testkit'
import { type Test, test } from 'tap'
import { type RunningBroker, startBroker } from '../support/broker.ts'
import { startCluster, statsOf } from '../support/cluster.ts'
import { apiOf, send } from '../support/http.ts'
import { stateOf } from '../support/node-state.ts'
import { countingDatabase, popsOf } from '../support/query-count.ts'

/** Intervals of fallback polls that are too long for a poll to have woken a waiter. */
const hintsOnly = { POP_WAIT_IDLE_INTERVAL_MS: '600000', POP_WAIT_BASE_INTERVAL_MS: '600000' }
const env = { ...hintsOnly, POP_WAIT_MAX_INTERVAL_MS: '600000' }
const timeout = 120_000
type Api = ReturnType<typeof apiOf>

async function untilWaiting(node: RunningBroker, count: number): Promise<void> {
  await eventually(
    async () => {
      const { body } = await send('GET', `${node.url}/stats`)
      return body.waiting.total === count && body.group_backoff.groups_in_flight === 0
    },
    { timeoutMs: 20_000 },
  )
}

test('nodes wake each other', { timeout }, async (t) => {
  const cluster = await startCluster(t, { nodes: 3, env })

  await t.test('a push on any node answers a waiter on any other', async (t) => {
    for (const from of cluster) {
      for (const to of cluster.filter((node) => node !== from)) {
        const queue = `from ${from.url} to ${to.url}`
        const answer = apiOf(to.url).pop(queue, '?wait=true&timeout=20000&autoAck=true')
        await untilWaiting(to, 1)
        await apiOf(from.url).push({ queue, payload: queue })
        t.match(await answer, { status: 200, body: { messages: [{ data: queue }] } })
      }
    }
    for (const { url } of cluster) {
      const { wakes, peers } = await statsOf(url)
      t.equal(wakes.fallback, 0)
      t.ok((wakes.udp ?? 0) >= 2, `${wakes.udp} wakes by UDP`)
      t.ok(peers.every(({ hintsSent = 0, hintsReceived = 0 }) => hintsSent + hintsReceived > 0))
    }
  })

  await t.test('an ack on one node frees a partition for a waiter on another', async (t) => {
    const [a, b] = cluster.map(({ url }) => apiOf(url)) as [Api, Api]
    const target = { queue: 'lane', partition: 'p' }
    await a.push({ ...target, payload: 1 }, { ...target, payload: 2 })
    const { body } = await a.pop('lane')
    const answer = b.pop('lane', '?wait=true&timeout=20000&autoAck=true')
    await untilWaiting(cluster[1] as RunningBroker, 1)
    await a.ack(body.messages[0])
    t.match(await answer, { status: 200, body: { messages: [{ data: 2 }] } })
  })

  await t.test(
    'options changed on one node release a message to a waiter on another',
    async (t) => {
      const [a, b] = cluster.map(({ url }) => apiOf(url)) as [Api, Api]
      await a.post('/configure', { queue: 'held', options: { maxInFlight: 1 } })
      await a.push({ queue: 'held', partition: 'x', payload: 1 })
      await a.push({ queue: 'held', partition: 'y', payload: 2 })
      t.equal((await a.pop('held')).status, 200)
      const answer = b.pop('held', '?wait=true&timeout=20000')
      await untilWaiting(cluster[1] as RunningBroker, 1)
      await a.post('/configure', { queue: 'held', options: { maxInFlight: 0 } })
      t.equal((await answer).status, 200)
    },
  )

  await t.test('a push on one node wakes a pop by namespace on another', async (t) => {
    const [a, b] = cluster.map(({ url }) => apiOf(url)) as [Api, Api]
    await a.post('/configure', { queue: 'mail', namespace: 'shop', task: 'send' })
    const answer = b.get('/pop?namespace=shop&task=send&wait=true&timeout=20000&autoAck=true')
    await untilWaiting(cluster[1] as RunningBroker, 1)
    await a.push({ queue: 'mail', payload: 'x' })
    t.match(await answer, { status: 200, body: { messages: [{ queue: 'mail' }] } })
  })

  await t.test('every node reports the statistics of the whole cluster', async (t) => {
    for (const { url } of cluster) {
      const { body } = await apiOf(url).get('/nodes')
      const seen = body.nodes.map(({ id, state }: { id: string; state: string }) => [id, state])
      t.same(
        seen,
        [1, 2, 3].map((number) => [`node-${number}`, 'alive']),
      )
      // Retry: a node stores its address in the database only after its peers have heard it.
      const whole = () => send('GET', `${url}/stats?scope=cluster`)
      await eventually(async () => (await whole()).body.totals.nodes === 3)
      t.match((await whole()).body, { totals: { nodes: 3, local_sidecars: 6 }, unreachable: [] })
    }
    t.equal((await send('GET', `${cluster[0]?.url}/stats?scope=galaxy`)).status, 400)
  })
})

test('a node promotes a delayed message on time by the hint of another node', {
  timeout,
}, async (t) => {
  const database = await testDatabase(t)
  const settings = { ...env, ROUSE_NOTIFY: 'off' }
  const cluster = await startCluster(t, { nodes: 2, database, env: settings })
  const [a, b] = cluster as [RunningBroker, RunningBroker]
  await eventually(async () => (await stateOf(b)).time.skewMs !== null)
  // The first node cannot promote, and the second cannot read due times: it knows the time only from the
  // hint.
  await refuse(database, 'rouse.promote_scheduled', 'rouse node-1 primary')
  await refuse(database, 'rouse.due_times', 'rouse node-2 primary')
  const answer = apiOf(b.url).pop('later', '?wait=true&timeout=20000')
  await untilWaiting(b, 1)
  const delayMs = 1_500
  const begun = performance.now()
  t.equal((await apiOf(a.url).push({ queue: 'later', payload: 'x', delayMs })).status, 201)
  t.match(await answer, { status: 200, body: { messages: [{ data: 'x' }] } })
  const tookMs = performance.now() - begun
  t.ok(tookMs >= delayMs, `not early: after ${tookMs} ms`)
  const { wakes } = await stateOf(b)
  t.match(wakes, { timer: 1, fallback: 0 }, 'woken by its own timer')
})

test('peers get hints for times that are due soon, and none for later ones', {
  timeout,
}, async (t) => {
  const node = await startBroker(t)
  await eventually(async () => (await stateOf(node)).time.skewMs !== null)
  const heard = await hearHints(t, node)
  const [hourMs, soonMs] = [3_600_000, 1_000]
  const { push } = apiOf(node.url)
  await push({ queue: 'later', payload: 1, delayMs: hourMs })
  await push({ queue: 'later', payload: 2, runAt: new Date(Date.now() + hourMs).toISOString() })
  await push({ queue: 'soon', payload: 3, delayMs: soonMs })
  const scheduled = () => heard.filter(({ kind }) => kind === 'SCHEDULED')
  await eventually(() => scheduled().some(({ scope }) => scope === 'soon'))
  t.same(
    scheduled().filter(({ scope }) => scope === 'later'),
    [],
  )
})

/** Joins the node's cluster as a peer that only listens. */
async function hearHints(t: Test, node: RunningBroker): Promise<readonly Hint[]> {
  const heard: Hint[] = []
  const identity = await joinCluster(node.database.pool)
  const listener = new GossipNode({
    ...identity,
    nodeId: 'listener',
    secrets: [],
    bind: { host: '127.0.0.1', port: 0 },
    peers: [(await send('GET', `${node.url}/stats`)).body.gossip.address],
    onHint: (hint) => heard.push(hint),
  })
  await listener.start()
  t.teardown(() => listener.stop())
  await eventually(async () => (await statsOf(node.url)).peers.some(({ hearsUs }) => hearsUs))
  return heard
}

/** Makes a function of the database fail for connections with this application name. */
async function refuse({ pool }: TestDatabase, name: string, applicationName: string) {
  const { rows } = await pool.query<{ definition: string }>(
    'select pg_get_functiondef($1::regproc) as definition',
    [name],
  )
  const refusal = `if current_setting('application_name') = '${applicationName}' then
    raise exception 'refused by the test';
  end if;`
  const definition = rows[0]?.definition ?? ''
  const refusing = definition.replace(/^begin$/m, `begin ${refusal}`)
  if (refusing === definition) throw new Error(`${name} does not begin as expected`)
  await pool.query(refusing)
}

test('one message for waiters on three nodes with four workers costs one delivery, one pop and no datagram', {
  timeout,
}, async (t) => {
  const database = await countingDatabase(t)
  const cluster = await startCluster(t, {
    nodes: 3,
    database,
    env: {
      ...env,
      ROUSE_WORKERS: '4',
      NOTIFY_DELIVERY_TIMEOUT_MS: '10000',
      POP_WAIT_LOCAL_FIRST_MS: '10000',
    },
  })
  const waiters = await waitEverywhere(t, cluster, 20)
  const hintsOf = async () => {
    const all = await Promise.all(cluster.map(({ url }) => send('GET', `${url}/stats`)))
    return all.reduce((sum, { body }) => sum + body.gossip.hintDatagramsSent, 0)
  }
  const [pops, hints] = [await popsOf(database), await hintsOf()]
  await apiOf(cluster[0]?.url as string).push({ queue: 'q', payload: 1 })
  await eventually(() => waiters.answered() === 1)
  await Promise.all(cluster.map(untilNothingInFlight))
  t.equal(waiters.answered(), 1)
  t.equal((await popsOf(database)) - pops, 1)
  t.equal((await hintsOf()) - hints, 0)
})

async function untilNothingInFlight({ url }: RunningBroker): Promise<void> {
  await eventually(async () => {
    const { body } = await send('GET', `${url}/stats`)
    return body.group_backoff.groups_in_flight === 0
  })
}

async function waitEverywhere(t: Test, cluster: readonly RunningBroker[], each: number) {
  const gone = new AbortController()
  t.teardown(() => gone.abort())
  let answered = 0
  for (const { url } of cluster) {
    for (let i = 0; i < each; i += 1) {
      void send('GET', apiOf(url).at('/pop/queue/q?wait=true&timeout=60000'), undefined, {
        signal: gone.signal,
      }).then(
        ({ status }) => {
          if (status === 200) answered += 1
        },
        () => {},
      )
    }
  }
  await Promise.all(cluster.map((node) => untilWaiting(node, each)))
  return { answered: () => answered }
}
