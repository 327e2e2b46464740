// `/metrics`: node-wide from any worker, complete, and bounded however many queues there are.
import { readFile } from 'node:fs/promises'
import { eventually, testDatabase } from '@rouse/testkit'
import { test } from 'tap'
import { startBroker } from '../support/broker.ts'
import { apiOf } from '../support/http.ts'
import { manyQueues } from '../support/many-queues.ts'

interface Scrape {
  readonly text: string
  readonly types: ReadonlyMap<string, string>
  value(series: string): number | undefined
  sum(prefix: string): number
}

async function scrape(url: string): Promise<Scrape> {
  const response = await fetch(`${url}/metrics`)
  if (!response.ok) throw new Error(`answered ${response.status}`)
  const text = await response.text()
  const lines = text.trimEnd().split('\n')
  const samples = lines
    .filter((line) => !line.startsWith('#'))
    .map((line) => {
      const at = line.lastIndexOf(' ')
      return [line.slice(0, at), Number(line.slice(at + 1))] as const
    })
  const values = new Map(samples)
  const types = lines.flatMap((line) => {
    const [, name = '', type = ''] = /^# TYPE (\S+) (\S+)$/.exec(line) ?? []
    return name === '' ? [] : [[name, type] as const]
  })
  return {
    text,
    types: new Map(types),
    value: (series) => values.get(series),
    sum: (prefix) =>
      samples.reduce((total, [name, value]) => total + (name.startsWith(prefix) ? value : 0), 0),
  }
}

test('every kind of work is counted once, whichever worker did it', async (t) => {
  const { url, database } = await startBroker(t, { env: { ROUSE_WORKERS: '3' } })
  const api = apiOf(url)
  await api.post('/configure', {
    queue: 'jobs',
    options: { retryBackoffMs: [0], ordering: 'none', onFailure: 'skip' },
  })
  for (let n = 0; n < 6; n += 1) await api.push({ queue: 'jobs', payload: n })
  await api.push({ queue: 'jobs', payload: 0, transactionId: 'once' })
  await api.push({ queue: 'jobs', payload: 0, transactionId: 'once' })
  await api.push({ queue: 'jobs', payload: 0, delayMs: 3_600_000 })
  const { messages } = (await api.pop('jobs', '?batch=7')).body
  const [first, second, third, fourth, fifth, sixth, last] = messages
  await api.ack(first)
  await api.ack(second, 'failed')
  await api.ack(third, 'retry', { delayMs: 3_600_000 })
  await api.ack(fourth, 'dlq')
  await api.ack(fifth)
  t.equal((await api.ack(fifth)).status, 409)
  await api.del(`/lease/${sixth.leaseId}`)
  const expected: Record<string, number> = {
    'rouse_messages_pushed_total{queue="jobs"}': 7,
    'rouse_messages_scheduled_total{queue="jobs"}': 1,
    'rouse_messages_duplicate_total{queue="jobs"}': 1,
    'rouse_messages_delivered_total{queue="jobs"}': 7,
    'rouse_messages_ended_total{queue="jobs",status="completed"}': 2,
    'rouse_messages_ended_total{queue="jobs",status="failed"}': 1,
    'rouse_messages_ended_total{queue="jobs",status="retry"}': 1,
    'rouse_messages_ended_total{queue="jobs",status="dlq"}': 1,
    'rouse_messages_dead_lettered_total{queue="jobs"}': 1,
    'rouse_acks_stale_total{queue="jobs"}': 1,
    'rouse_redeliveries_total{reason="failed"}': 1,
    'rouse_redeliveries_total{reason="retry"}': 1,
    'rouse_redeliveries_total{reason="released"}': 1,
    'rouse_queue_ready{queue="jobs"}': 2,
    'rouse_queue_scheduled{queue="jobs"}': 1,
    'rouse_queue_dead_letters{queue="jobs"}': 1,
    'rouse_queue_leased{queue="jobs"}': 0,
    rouse_workers: 3,
    rouse_database_up: 1,
    rouse_queues: 1,
  }
  t.ok(last)
  await eventually(
    async () => {
      const seen = await scrape(url)
      return Object.entries(expected).every(([series, value]) => seen.value(series) === value)
    },
    { timeoutMs: 5_000 },
  ).catch(() => {})
  const seen = await scrape(url)
  for (const [series, value] of Object.entries(expected)) t.equal(seen.value(series), value, series)
  t.equal(seen.sum('rouse_delivery_duration_seconds_count'), 7)
  t.ok(seen.sum('rouse_sql_duration_seconds_count') >= 15, 'SQL calls are timed')
  t.ok(seen.sum('rouse_batch_messages_sum{kind="push"}') >= 8)
  t.ok(seen.sum('rouse_table_size_bytes') > 100_000)
  // Recorded once a second.
  await eventually(async () => (await scrape(url)).sum('rouse_event_loop_delay_seconds_count') > 0)
  await database.pool.query('select 1')
})

test('messages whose lease expires on the last attempt are counted as dead letters', async (t) => {
  const { url } = await startBroker(t)
  const api = apiOf(url)
  await api.post('/configure', { queue: 'lost', options: { leaseTime: 1, retryLimit: 0 } })
  const item = { queue: 'lost', partition: 'p' }
  await api.push({ ...item, payload: 1 }, { ...item, payload: 2 })
  t.equal((await api.pop('lost', '?batch=2')).body.messages.length, 2)
  const dead = 'rouse_messages_dead_lettered_total{queue="lost"}'
  await eventually(async () => (await scrape(url)).value(dead) === 2, { timeoutMs: 15_000 })
  const seen = await scrape(url)
  t.equal(seen.value('rouse_redeliveries_total{reason="expired"}'), 1, 'one lease')
  t.equal(seen.value('rouse_queue_dead_letters{queue="lost"}'), 2)
})

test('a waiting pop shows as a waiter, and its wake-up by source', async (t) => {
  const { url } = await startBroker(t)
  const api = apiOf(url)
  const popped = api.pop('woken', '?wait=true&timeout=20000')
  const waits = 'rouse_queue_waiters{queue="woken"}'
  await api.post('/configure', { queue: 'woken' })
  await eventually(async () => (await scrape(url)).value(waits) === 1, { timeoutMs: 10_000 })
  await api.push({ queue: 'woken', payload: 1 })
  t.equal((await popped).body.messages.length, 1)
  await eventually(
    async () => {
      const seen = await scrape(url)
      const count = (source: string): number =>
        seen.value(`rouse_delivery_duration_seconds_count{source="${source}"}`) ?? 0
      return seen.value(waits) === 0 && count('local') + count('ipc') === 1
    },
    { timeoutMs: 10_000 },
  )
  t.ok((await scrape(url)).sum('rouse_wake_duration_seconds_count') >= 1)
})

test('no counter goes down when a worker dies', async (t) => {
  const { url, child, log } = await startBroker(t)
  const api = apiOf(url)
  for (let n = 0; n < 20; n += 1) await api.push({ queue: 'jobs', payload: n })
  const counted = async () => (await scrape(url)).value('rouse_messages_pushed_total{queue="jobs"}')
  await eventually(async () => (await counted()) === 20, { timeoutMs: 5_000 })
  const before = await scrape(url)
  const [worker] = log.filter(({ msg }) => msg === 'worker is ready')
  process.kill(worker?.workerPid as number, 'SIGKILL')
  const restarted = async () => (await scrape(url)).value('rouse_worker_restarts_total') === 1
  await eventually(() => restarted().catch(() => false), { timeoutMs: 10_000 })
  // On a busy machine a scrape may get no answer of a worker in time, which is 503.
  const after = await eventually(() => scrape(url).catch(() => undefined), { timeoutMs: 10_000 })
  for (const line of before.text.split('\n')) {
    const [series = '', value] = line.split(' ')
    const name = series.replace(/(_bucket|_sum|_count)?(\{.*)?$/, '')
    if (!['counter', 'histogram'].includes(before.types.get(name) ?? '')) continue
    t.ok((after.value(series) ?? -1) >= Number(value), series)
  }
  t.ok(child.pid)
})

test('the size does not depend on the number of queues', async (t) => {
  const database = await testDatabase(t, { content: manyQueues(10_000) })
  const { url } = await startBroker(t, { database, env: { ROUSE_WORKERS: '1' } })
  const api = apiOf(url)
  const items = Array.from({ length: 10_000 }, (_, n) => ({ queue: queueName(n), payload: 1 }))
  t.equal((await api.push(...items)).status, 201)
  // On a busy machine the first reads of all figures may take longer than a scrape waits for them.
  await eventually(async () => (await scrape(url)).sum('rouse_queue_ready{') === 20_000, {
    timeoutMs: 60_000,
  })
  const startedMs = performance.now()
  const seen = await scrape(url)
  t.comment(`${Math.round(performance.now() - startedMs)} ms, ${seen.text.length} bytes`)
  t.ok(Buffer.byteLength(seen.text) <= 1024 * 1024)
  const series = seen.text.split('\n').filter((line) => line !== '' && !line.startsWith('#'))
  t.ok(series.length < 5_000, `${series.length} series`)
  const queues = series.filter((line) => line.startsWith('rouse_queue_ready{'))
  t.equal(queues.length, 101, 'a hundred queues and the rest')
  t.equal(seen.sum('rouse_queue_ready{'), 20_000, 'nothing is left out of the sum')
  t.equal(seen.sum('rouse_messages_pushed_total{'), 10_000)
  t.ok((seen.value('rouse_messages_pushed_total{queue="_other"}') ?? 0) >= 9_900)
})

test('hostile queue names are escaped', async (t) => {
  const { url } = await startBroker(t)
  const queue = 'a"b\\c d{e}é'
  await apiOf(url).push({ queue, payload: 1 })
  const series = `rouse_messages_pushed_total{queue="a\\"b\\\\c d{e}é"}`
  await eventually(async () => (await scrape(url)).value(series) === 1, { timeoutMs: 5_000 })
  await apiOf(url).push({ queue: '_other', payload: 1 })
  const other = 'rouse_messages_pushed_total{queue="_other"}'
  t.ok(await eventually(async () => (await scrape(url)).value(other) === 1, { timeoutMs: 5_000 }))
})

test('without the database a node shows its own metrics', async (t) => {
  const { url, database } = await startBroker(t)
  const { pool } = database
  await pool.query('alter table rouse.queues rename to hidden')
  const seen = await scrape(url)
  t.ok(seen.types.has('rouse_wakes_total'))
  t.notOk(seen.types.has('rouse_queue_ready'))
  await pool.query('alter table rouse.hidden rename to queues')
})

test('the dashboard and the alert rules name only metrics that exist', async (t) => {
  const { url } = await startBroker(t)
  const { types, text } = await scrape(url)
  for (const file of ['grafana-dashboard.json', 'alert-rules.yml', '../docs/metrics.md']) {
    const source = await readFile(
      new URL(`../../../../cluster-config/${file}`, import.meta.url),
      'utf8',
    )
    const names = new Set(source.match(/\brouse_[a-z_]+[a-z]\b/g))
    t.ok(names.size > 10, file)
    for (const name of names) {
      const family = name.replace(/_(bucket|sum|count)$/, '')
      const exists =
        types.has(name) || types.get(family) === 'histogram' || text.includes(`"${name}"`)
      t.ok(exists, `${name} in ${file}`)
    }
  }
})

test('every metric has a type, help, a base unit, and a name by the rules', async (t) => {
  const { url } = await startBroker(t)
  const { types, text } = await scrape(url)
  for (const [name, type] of types) {
    t.match(name, /^rouse_[a-z_]+$/)
    t.equal(name.endsWith('_total'), type === 'counter', name)
    t.notMatch(name, /_(ms|milliseconds|kb|mb)(_|$)/)
    t.match(text, new RegExp(`^# HELP ${name} .`, 'm'))
  }
})

function queueName(n: number): string {
  return `q${String(n + 1).padStart(5, '0')}`
}
