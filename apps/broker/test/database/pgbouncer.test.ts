// Nodes behind pgbouncer in transaction mode: every transaction may run on another server connection.
import { pgbouncerMissing, startPgbouncer, testDatabase } from '@rouse/testkit'
import pg from 'pg'
import { type Test, test } from 'tap'
import { type RunningBroker, startBroker } from '../support/broker.ts'
import { startCluster } from '../support/cluster.ts'
import { ackOf, apiOf } from '../support/http.ts'
import { stateOf, untilWaiting, wakesDuring } from '../support/node-state.ts'

const options = { skip: pgbouncerMissing, timeout: 120_000 }

/** Fewer server connections than a node opens to pgbouncer, so that they are shared. */
const poolSize = 3

async function pooled(t: Test) {
  const database = await testDatabase(t, { instrumented: false })
  const pgbouncer = await startPgbouncer(database.url, { poolSize })
  t.teardown(() => pgbouncer.stop())
  return { database, through: pgbouncer.through(database.url) }
}

/** Starts a node that queries through the pooler and LISTENs on PostgreSQL directly. */
async function pooledNode(
  t: Test,
  env: Readonly<Record<string, string>> = {},
): Promise<RunningBroker> {
  const { database, through } = await pooled(t)
  const urls = { ROUSE_DATABASE_URL: through, ROUSE_LISTEN_URL: database.url }
  return startBroker(t, { database, env: { ...urls, ...env } })
}

/** Makes a hundred concurrent calls, so that every kind of statement runs on every server connection. */
async function pushAndPopMany(t: Test, node: RunningBroker): Promise<void> {
  const api = apiOf(node.url)
  const many = Array.from({ length: 100 }, (_, i) => ({
    queue: 'many',
    partition: `p${i}`,
    payload: i,
  }))
  const pushed = await Promise.all(many.map((item) => api.push(item)))
  t.same(new Set(pushed.map(({ status }) => status)), new Set([201]))
  const taken = await Promise.all(many.map(() => api.pop('many', '?wait=true&timeout=20000')))
  t.same(new Set(taken.map(({ status }) => status)), new Set([200]))
  const messages = taken.map(({ body }) => body.messages[0])
  t.equal(new Set(messages.map(({ data }) => data)).size, many.length, 'each was delivered once')
  const acked = await Promise.all(messages.map((message) => api.ack(message)))
  t.same(new Set(acked.map(({ status }) => status)), new Set([200]))
}

test(
  'push, pop, ack, transactions, delays and schedules work through pgbouncer',
  options,
  async (t) => {
    const node = await pooledNode(t)
    const api = apiOf(node.url)

    await t.test('many messages at once', (t) => pushAndPopMany(t, node))

    await t.test('a transaction', async (t) => {
      await api.push({ queue: 'first', payload: 1 })
      const [message] = (await api.pop('first')).body.messages
      const { status } = await api.post('/transaction', {
        operations: [
          { type: 'ack', ...ackOf(message), status: 'completed' },
          { type: 'push', items: [{ queue: 'second', payload: 2 }] },
        ],
        requiredLeases: [message.leaseId],
      })
      t.equal(status, 200)
      t.match(await api.pop('second', '?autoAck=true'), { body: { messages: [{ data: 2 }] } })
    })

    await t.test('a delayed message wakes a waiter', async (t) => {
      await api.push({ queue: 'later', payload: 1, delayMs: 500 })
      t.equal((await api.pop('later')).status, 204)
      const answer = await api.pop('later', '?wait=true&timeout=20000&autoAck=true')
      t.match(answer, { status: 200, body: { messages: [{ data: 1 }] } })
    })

    await t.test('a schedule fires', async (t) => {
      await api.post('/schedules', { name: 's', queue: 'ticks', cron: '* * * * * *', payload: 't' })
      const answer = await api.pop('ticks', '?wait=true&timeout=20000&autoAck=true')
      t.match(answer, { status: 200, body: { messages: [{ data: 't' }] } })
      t.equal((await api.del('/schedules/s')).status, 200)
    })
  },
)

test('a push on one node wakes a waiter on another', options, async (t) => {
  const { database, through } = await pooled(t)
  const env = { ROUSE_DATABASE_URL: through, ROUSE_LISTEN_URL: database.url }
  const [here, there] = await startCluster(t, { nodes: 2, database, env })
  const waiting = apiOf((there as RunningBroker).url).pop('q', '?wait=true&timeout=20000')
  await untilWaiting(there as RunningBroker, 'q', 1)
  const wakes = await wakesDuring(there as RunningBroker, async () => {
    await apiOf((here as RunningBroker).url).push({ queue: 'q', payload: 1 })
    t.equal((await waiting).status, 200)
  })
  t.match(wakes, { udp: 1 })
})

test('LISTEN bypasses pgbouncer, so that an SQL producer wakes a waiter', options, async (t) => {
  const node = await pooledNode(t)
  t.match(await stateOf(node), { time: { listener: 'up' }, mode: { mode: 'healthy' } })
  const waiting = apiOf(node.url).pop('q', '?wait=true&timeout=20000')
  await untilWaiting(node, 'q', 1)
  const wakes = await wakesDuring(node, async () => {
    await node.database.pool.query(`select rouse.enqueue('q', '1')`)
    t.equal((await waiting).status, 200)
  })
  t.match(wakes, { notify: 1 })
})

test(
  'a node that can LISTEN only through pgbouncer logs it, and finds messages of SQL producers by polling',
  options,
  async (t) => {
    const { database, through } = await pooled(t)
    const node = await startBroker(t, { database, env: { ROUSE_DATABASE_URL: through } })
    t.match(await stateOf(node), {
      time: { listener: 'down' },
      mode: { mode: 'aggressive', why: ['listener_lost'] },
    })
    t.match(
      node.log.find(({ msg }) => String(msg).startsWith('LISTEN lost')),
      { reason: /pooler.*ROUSE_LISTEN_URL/ },
    )
    const waiting = apiOf(node.url).pop('q', '?wait=true&timeout=20000')
    await untilWaiting(node, 'q', 1)
    await database.pool.query(`select rouse.enqueue('q', '1')`)
    t.equal((await waiting).status, 200)
    t.same(await channelsOf(through), [], 'no LISTEN is left on a connection of the pooler')
  },
)

test(
  'a node behind pgbouncer works although prepared statements are switched on',
  options,
  async (t) => {
    const node = await pooledNode(t, { ROUSE_PREPARE: 'on' })
    await pushAndPopMany(t, node)
  },
)

test('a node migrates the schema through pgbouncer', options, async (t) => {
  const { database } = await pooled(t)
  const empty = `${database.url.split('/').at(-1)}_empty`
  await database.pool.query(`create database ${empty}`)
  t.teardown(() => dropDatabase(database.url, empty))
  const url = new URL(database.url)
  url.pathname = empty
  const pgbouncer = await startPgbouncer(database.url, { poolSize })
  t.teardown(() => pgbouncer.stop())
  const urls = { ROUSE_DATABASE_URL: pgbouncer.through(url.href), ROUSE_LISTEN_URL: url.href }
  const nodes = await Promise.all([1, 2].map(() => startBroker(t, { database, env: urls })))
  for (const node of nodes) {
    t.equal((await apiOf(node.url).push({ queue: 'q', payload: 1 })).status, 201)
  }
})

/** Returns the channels on which the server connections of the pooler listen. Uses all of them at once. */
async function channelsOf(url: string): Promise<string[]> {
  const clients = await Promise.all(
    Array.from({ length: poolSize }, async () => {
      const client = new pg.Client({ connectionString: url })
      await client.connect()
      await client.query('begin')
      return client
    }),
  )
  const found = await Promise.all(
    clients.map((client) => client.query('select pg_listening_channels() as channel')),
  )
  await Promise.all(clients.map((client) => client.end()))
  return found.flatMap(({ rows }) => rows.map(({ channel }) => String(channel)))
}

async function dropDatabase(serverUrl: string, name: string): Promise<void> {
  const url = new URL(serverUrl)
  url.pathname = 'postgres'
  const admin = new pg.Client({ connectionString: url.href })
  await admin.connect()
  await admin.query(`drop database ${name} with (force)`)
  await admin.end()
}
