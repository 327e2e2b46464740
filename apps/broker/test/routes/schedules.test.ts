// Schedules over HTTP on real nodes: each tick pushes one message, whichever node fires it.
import { eventually, testDatabase } from '@rouse/testkit'
import { test } from 'tap'
import { startBroker } from '../support/broker.ts'
import { apiOf, send } from '../support/http.ts'
import { sharedBroker, unique } from '../support/shared-broker.ts'

const node = await sharedBroker()
const api = apiOf(node.url)

test('a schedule is created, listed, replaced and deleted', async (t) => {
  const name = unique('nightly/ü')
  const created = await api.post('/schedules', {
    name,
    queue: 'reports',
    cron: '0 3 * * *',
    timeZone: 'Europe/Berlin',
    payload: { kind: 'nightly' },
    headers: { tenant: 7 },
  })
  t.equal(created.status, 200)
  t.match(created.body, {
    name,
    queue: 'reports',
    partition: null,
    cron: '0 3 * * *',
    timeZone: 'Europe/Berlin',
    payload: { kind: 'nightly' },
    headers: { tenant: 7 },
    catchUp: 'last',
    paused: false,
    nextAt: /T0[12]:00:00\.000Z$/,
    lastAt: null,
  })
  await api.post('/schedules', { name, queue: 'reports', cron: '@hourly', paused: true })
  const { body } = await api.get('/schedules')
  const listed = body.schedules.filter((one: { name: string }) => one.name === name)
  t.match(listed, [{ cron: '@hourly', paused: true, nextAt: null, payload: null, headers: null }])
  t.equal(listed.length, 1)
  const path = `/schedules/${encodeURIComponent(name)}`
  t.same((await api.get(path)).body, listed[0])
  const put = (body: unknown) => send('PUT', api.at(path), body)
  const long = { n: 1 }
  const replaced = await put({ queue: 'reports', cron: '@daily', payload: long })
  t.match(replaced, { status: 200, body: { name, cron: '@daily', payload: long, paused: false } })
  t.match(await put({ name, queue: 'q', cron: '@daily' }), {
    status: 400,
    body: { code: 'unknown_field', errors: [{ field: 'name' }] },
  })
  t.equal((await put({ queue: 'reports', cron: 'never' })).status, 400)
  t.equal((await api.get('/schedules/no-such')).status, 404)
  t.same((await api.del(path)).body, { deleted: true })
  t.match(await api.del(path), { status: 404, body: { code: 'not_found' } })
})

test('an invalid schedule is refused with the invalid field', async (t) => {
  const good = { name: 'n', queue: 'q', cron: '* * * * *' }
  for (const [field, change] of [
    ['cron', { cron: '61 * * * *' }],
    ['cron', { cron: 'soon' }],
    ['cron', { cron: '2030-01-01T00:00:00' }],
    ['cron', { cron: '0 0 30 2 *' }],
    ['cron', { cron: undefined }],
    ['timeZone', { timeZone: 'Mars/Base' }],
    ['catchUp', { catchUp: 'some' }],
    ['queue', { queue: '..' }],
    ['name', { name: '' }],
    ['partition', { partition: 'a\u0000b' }],
    ['headers', { headers: 'none' }],
    ['paused', { paused: 'yes' }],
  ] as const) {
    const { status, headers, body } = await api.post('/schedules', { ...good, ...change })
    t.equal(status, 400, JSON.stringify(change))
    t.match(headers.get('content-type'), /^application\/problem\+json/)
    t.ok(JSON.stringify(body).includes(field), body.detail)
  }
})

test('a tick pushes one message, whose headers name the schedule and the tick', async (t) => {
  const queue = unique()
  const name = unique('every second')
  await api.post('/schedules', {
    name,
    queue,
    partition: 'p',
    cron: '* * * * * *',
    payload: { big: 'x' },
    headers: { tenant: 7 },
  })
  const { body } = await api.pop(queue, '?wait=true&timeout=10000')
  const arrivedAt = Date.now()
  const [message] = body.messages
  t.match(message, { data: { big: 'x' }, partition: 'p', headers: { schedule: name, tenant: 7 } })
  t.match(message.headers.scheduledAt, /T\d\d:\d\d:\d\d\.000Z$/)
  const lateMs = arrivedAt - Date.parse(message.headers.scheduledAt)
  t.ok(lateMs >= 0 && lateMs < 1_000, `${lateMs} ms after the tick`)
  await api.del(`/schedules/${encodeURIComponent(name)}`)
})

interface Tick {
  readonly headers: { readonly scheduledAt: string }
}

test('three nodes fire every tick once', async (t) => {
  const database = await testDatabase(t, { instrumented: false })
  const env = { ROUSE_WORKERS: '1' }
  const nodes = await Promise.all([1, 2, 3].map(() => startBroker(t, { database, env })))
  const client = apiOf(nodes[0]?.url ?? '')
  await client.post('/schedules', { name: 's', queue: 'q', cron: '* * * * * *', catchUp: 'all' })
  const ticks: number[] = []
  await eventually(
    async () => {
      const { status, body } = await client.pop('q', '?batch=100&autoAck=true')
      if (status === 200) {
        const found = (body.messages as Tick[]).map(({ headers }) =>
          Date.parse(headers.scheduledAt),
        )
        ticks.push(...found)
      }
      return ticks.length >= 5
    },
    { timeoutMs: 20_000 },
  )
  await client.del('/schedules/s')
  const gaps = ticks.slice(1).map((tick, i) => tick - (ticks[i] ?? 0))
  t.ok(
    gaps.every((gap) => gap === 1_000),
    `a second apart, none twice, none missing: ${gaps.join()}`,
  )
})

test('ticks missed while every node was down are caught up as catchUp says', async (t) => {
  const database = await testDatabase(t)
  await database.freezeClock('2030-01-01T00:30:00Z')
  const first = await startBroker(t, { database })
  for (const catchUp of ['none', 'last', 'all']) {
    await apiOf(first.url).post('/schedules', {
      name: catchUp,
      queue: catchUp,
      cron: '0 * * * *',
      catchUp,
    })
  }
  await first.stop()
  await database.freezeClock('2030-01-01T05:30:00Z')
  const second = await startBroker(t, { database })
  const client = apiOf(second.url)
  const ticksOf = async (queue: string): Promise<string[]> => {
    const { status, body } = await client.pop(queue, '?batch=100')
    return status === 204 ? [] : (body.messages as Tick[]).map(({ headers }) => headers.scheduledAt)
  }
  await eventually(async () => {
    const { body } = await client.get('/schedules')
    const next = body.schedules.map(({ nextAt }: { nextAt: string }) => nextAt)
    return next.every((at: string) => at === '2030-01-01T06:00:00.000Z')
  })
  t.same(await ticksOf('none'), [])
  t.same(await ticksOf('last'), ['2030-01-01T05:00:00.000Z'])
  t.same(
    await ticksOf('all'),
    [1, 2, 3, 4, 5].map((hour) => `2030-01-01T0${hour}:00:00.000Z`),
  )
})

test('a daily tick at 02:30 fires once when clocks go back and once when they go forward', async (t) => {
  const database = await testDatabase(t)
  await database.freezeClock('2026-10-24T12:00:00Z')
  const own = await startBroker(t, { database })
  const client = apiOf(own.url)
  await client.post('/schedules', {
    name: 's',
    queue: 'q',
    cron: '30 2 * * *',
    timeZone: 'Europe/Berlin',
  })
  const ticks: string[] = []
  const at = async (time: string): Promise<void> => {
    await database.freezeClock(time)
    const { status, body } = await client.pop('q', '?wait=true&timeout=1500&autoAck=true')
    if (status === 200)
      ticks.push(...(body.messages as Tick[]).map((one) => one.headers.scheduledAt))
  }
  await at('2026-10-25T00:30:00Z') // 02:30 in summer time
  await at('2026-10-25T01:30:00Z') // 02:30 again, in winter time
  await at('2026-10-26T01:30:00Z')
  t.same(ticks, ['2026-10-25T00:30:00.000Z', '2026-10-26T01:30:00.000Z'])
  await database.freezeClock('2027-03-27T12:00:00Z')
  await client.post('/schedules', {
    name: 's',
    queue: 'q',
    cron: '30 2 * * *',
    timeZone: 'Europe/Berlin',
  })
  ticks.length = 0
  await at('2027-03-28T01:30:00Z') // 03:30, because there is no 02:30
  await at('2027-03-29T00:30:00Z')
  t.same(ticks, ['2027-03-28T01:30:00.000Z', '2027-03-29T00:30:00.000Z'])
})

test('a paused schedule does not fire, and does not catch up when it is resumed', async (t) => {
  const queue = unique()
  const name = unique('paused')
  const schedule = { name, queue, cron: '* * * * * *', catchUp: 'all' }
  await api.post('/schedules', { ...schedule, paused: true })
  t.equal((await api.pop(queue, '?wait=true&timeout=2500')).status, 204)
  const resumed = Date.now()
  await api.post('/schedules', schedule)
  const { body } = await api.pop(queue, '?wait=true&timeout=10000')
  t.ok(Date.parse(body.messages[0].headers.scheduledAt) > resumed - 1_000)
  await api.del(`/schedules/${name}`)
})

test('a full queue delays only its own schedule', async (t) => {
  const [full, free] = [unique('full'), unique('free')]
  await api.post('/configure', { queue: full, options: { maxSize: 1 } })
  await api.push({ queue: full, payload: 'in the way' })
  await api.post('/schedules', { name: full, queue: full, cron: '* * * * * *' })
  await api.post('/schedules', { name: free, queue: free, cron: '* * * * * *' })
  // At least two ticks pass. The full queue will have room for one message.
  for (let i = 0; i < 3; i += 1) {
    t.equal((await api.pop(free, '?wait=true&timeout=10000&autoAck=true')).status, 200)
  }
  const held = await api.pop(full)
  t.equal((await api.ack(held.body.messages[0])).status, 200)
  const { body } = await api.pop(full, '?wait=true&timeout=10000')
  t.match(body.messages[0].headers, { schedule: full }, 'it fires when there is room')
  await api.del(`/schedules/${full}`)
  await api.del(`/schedules/${free}`)
})

test('a locked queue delays only its own schedules, however many it has', async (t) => {
  const database = await testDatabase(t)
  const broker = await startBroker(t, { database })
  const own = apiOf(broker.url)
  await own.push({ queue: 'locked', payload: 'first' })
  const holder = await database.pool.connect()
  t.teardown(() => holder.release(true))
  await holder.query('begin')
  await holder.query('select from rouse.partitions for update')
  // More schedules than the scheduler reads in one round.
  for (let i = 0; i < 120; i += 1) {
    await own.post('/schedules', { name: `l${i}`, queue: 'locked', cron: '* * * * * *' })
  }
  await own.post('/schedules', { name: 'free', queue: 'free', cron: '* * * * * *' })
  for (let i = 0; i < 2; i += 1) {
    t.equal((await own.pop('free', '?wait=true&timeout=10000&autoAck=true')).status, 200)
  }
  await holder.query('commit')
  await own.pop('locked', '?autoAck=true')
  const { body } = await own.pop('locked', '?wait=true&timeout=10000')
  t.match(body.messages[0].headers, { schedule: /^l/ }, 'they fire when the lock ends')
})
