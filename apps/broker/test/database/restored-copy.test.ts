// Nodes on a copy of a database: messages are delivered, but schedules and redrives do not run until the copy
// is adopted. A standby that took over is not a copy.
import { createPool, migrate } from '@rouse/database'
import { adoptCopy, joinCluster, readCopyState } from '@rouse/storage'
import {
  copyByDump,
  dumpMajor,
  dumpMissing,
  eventually,
  sharedPostgresUrl,
  startPostgresPair,
  startTestPostgres,
  testServerSettings,
} from '@rouse/testkit'
import pg from 'pg'
import { type Test, test } from 'tap'
import { type RunningBroker, startBroker } from '../support/broker.ts'
import { untilAllHeard } from '../support/cluster.ts'
import { apiOf, send } from '../support/http.ts'

const timeout = 120_000
const patience = { timeoutMs: 30_000 }

test('a copy under another name on the same server', { timeout }, async (t) => {
  const server = await sharedPostgresUrl()
  const [original, copy] = [await newDatabase(t, server), nameOfDatabase()]
  const { systemIdentifier } = await fillAndStop(t, original.url)
  await onServer(server, `create database ${copy} template ${original.name}`)
  t.teardown(() => onServer(server, `drop database ${copy} with (force)`))
  await useCopy(t, urlOf(server, copy), { database: original.name, systemIdentifier })
})

test('a dump restored on another server', { timeout, skip: dumpMissing }, async (t) => {
  const [from, to] = await Promise.all([newServer(t), newServer(t)])
  const original = await newDatabase(t, from, 'app')
  const { systemIdentifier } = await fillAndStop(t, original.url)
  // Roles are not part of a dump.
  for (const role of ['rouse_producer', 'rouse_node']) {
    await onServer(to, `create role ${role} nologin`)
  }
  const restored = await newDatabase(t, to, 'app')
  await copyByDump(original.url, restored.url)
  await useCopy(t, restored.url, { database: 'app', systemIdentifier })
})

test('a standby that took over is not a copy', { timeout }, async (t) => {
  const pair = await startPostgresPair()
  t.teardown(() => pair.stop())
  const pool = createPool({ url: pair.url, max: 2, applicationName: 'rouse test' })
  t.teardown(() => pool.end())
  await migrate({ pool })
  const before = await joinCluster(pool)
  await pair.inSync()
  await pair.primary.kill()
  await pair.promoteStandby()
  const after = await eventually(() => joinCluster(pool), patience)
  t.equal(after.clusterId, before.clusterId)
  t.equal((await readCopyState(pool)).copyOf, undefined)
})

/** A backlog with one leased message, a schedule that ticks every second, and a redrive of three messages. */
async function fillAndStop(t: Test, url: string) {
  const node = await startBroker(t, { env: { ROUSE_DATABASE_URL: url, ROUSE_NODE_ID: 'original' } })
  const api = apiOf(node.url)
  await api.post('/configure', { queue: 'jobs', options: { leaseTime: 1 } })
  await api.push(...[1, 2, 3].map((payload) => ({ queue: 'jobs', payload })))
  t.match((await api.pop('jobs')).body.messages, [{ data: 1 }], 'leased when the copy is made')
  for (const payload of [1, 2, 3]) {
    await api.push({ queue: 'dead', payload })
    const { body } = await api.pop('dead')
    await api.ack(body.messages[0], 'dlq')
  }
  // At this rate, the first of the three is moved now and the others later.
  const { body } = await api.post('/dlq/redrive', { queue: 'dead', rate: 1 })
  t.match(body, { state: 'running', total: 3 })
  await api.post('/schedules', { name: 's', queue: 'ticks', cron: '* * * * * *', catchUp: 'last' })
  t.equal((await api.pop('ticks', '?wait=true&timeout=10000&autoAck=true')).status, 200)
  await node.stop()
  return inDatabase(url, readCopyState)
}

/** Everything that a node does on the copy before and after it is adopted. */
async function useCopy(t: Test, url: string, copyOf: object): Promise<void> {
  const env = { ROUSE_DATABASE_URL: url }
  const node = await startBroker(t, { env: { ...env, ROUSE_NODE_ID: 'copy-1' } })
  const api = apiOf(node.url)
  const stats = async () => (await send('GET', `${node.url}/stats`)).body
  t.same((await stats()).copy_of, copyOf)
  t.match((await api.get('/queues/jobs/why')).body.reasons.at(-1), {
    code: 'database_copy',
    text: /schedules and redrives do not run .*rouse adopt-copy/,
    ...copyOf,
  })

  const drained: number[] = []
  while (drained.length < 3) {
    const { body } = await api.pop('jobs', '?wait=true&timeout=20000&autoAck=true')
    drained.push(...body.messages.map(({ data }: { data: number }) => data))
  }
  t.same(drained, [1, 2, 3], 'the leased message is delivered again, then the others')

  const before = await inDatabase(url, progress)
  const { runs } = (await stats()).time
  await eventually(async () => {
    const { time } = await stats()
    return time.runs.cron >= runs.cron + 2 && time.runs.retain >= runs.retain + 2
  }, patience)
  t.same(await inDatabase(url, progress), before, 'two runs of the jobs have changed nothing')

  t.ok(await inDatabase(url, adoptCopy))
  const tick = await api.pop('ticks', '?wait=true&timeout=20000&autoAck=true')
  t.match(tick.body.messages, [{ headers: { schedule: 's' } }])
  await eventually(async () => (await inDatabase(url, progress)).states === 'done', patience)
  await eventually(async () => (await stats()).copy_of === null, patience)
  t.equal(countOf(node, /is a copy/), 1, 'one warning')
  t.equal(countOf(node, /was adopted/), 1)

  const second = await startBroker(t, { env: { ...env, ROUSE_NODE_ID: 'copy-2' } })
  await untilAllHeard([node, second])
  t.equal(countOf(second, /is a copy/), 0)
}

function countOf({ log }: RunningBroker, text: RegExp): number {
  return log.filter(({ msg }) => text.test(String(msg))).length
}

/** How far the schedule and the redrive are. */
async function progress(pool: pg.Pool) {
  const { rows } = await pool.query<{ states: string }>(
    `select (select string_agg(state, ' ') from rouse.redrives) as states,
       (select sum(moved) from rouse.redrives) as moved, (select last_at from rouse.schedules) as last_at,
       (select count(*) from rouse.messages m join rouse.partitions p on p.id = m.partition_id
        join rouse.queues q on q.id = p.queue_id where q.name = 'ticks') as ticks`,
  )
  return rows[0] ?? { states: '' }
}

async function inDatabase<Result>(url: string, ask: (pool: pg.Pool) => Promise<Result>) {
  const pool = createPool({ url, max: 1, applicationName: 'rouse test' })
  try {
    return await ask(pool)
  } finally {
    await pool.end()
  }
}

async function newServer(t: Test): Promise<string> {
  const major = dumpMajor === undefined ? {} : { major: dumpMajor }
  const server = await startTestPostgres({ settings: testServerSettings, ...major })
  t.teardown(() => server.stop())
  return server.url
}

let names = 0

function nameOfDatabase(): string {
  names += 1
  return `rouse_copy_${process.pid}_${names}`
}

async function newDatabase(t: Test, server: string, name = nameOfDatabase()) {
  await onServer(server, `create database ${name}`)
  t.teardown(() => onServer(server, `drop database if exists ${name} with (force)`).catch(() => {}))
  return { name, url: urlOf(server, name) }
}

function urlOf(server: string, name: string): string {
  const url = new URL(server)
  url.pathname = `/${name}`
  return url.href
}

async function onServer(server: string, sql: string): Promise<void> {
  const client = new pg.Client({ connectionString: server })
  await client.connect()
  try {
    await client.query(sql)
  } finally {
    await client.end()
  }
}
