// Lists for operators have pages, and slow list queries do not slow down pushes and pops.
import { eventually } from '@rouse/testkit'
import { test } from 'tap'
import { apiOf } from '../support/http.ts'
import { sharedBroker } from '../support/shared-broker.ts'
import { sqlUser } from '../support/sql-user.ts'

const node = await sharedBroker({ env: { ROUSE_WORKERS: '1' } })
const api = apiOf(node.url)

const readsAtOnce = 40
const slots = 2

test('hanging reads take at most two connections, and pushes still work', async (t) => {
  await api.push({ queue: 'pushed', payload: 0 })
  const operator = await sqlUser(t, node.database.url)
  await operator.query('begin')
  await operator.query('lock table rouse.dead_letters in access exclusive mode')
  const reads = Array.from({ length: readsAtOnce }, () => api.get('/dlq'))
  const hanging = async () => {
    const { rows } = await node.database.pool.query(
      `select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`,
    )
    return rows.length
  }
  await eventually(async () => (await hanging()) === slots)
  for (let n = 0; n < 20; n += 1) {
    t.equal((await api.push({ queue: 'pushed', payload: n })).status, 201)
  }
  t.equal(await hanging(), slots)
  t.equal((await fetch(`${node.url}/ready`)).status, 200)
  await operator.query('commit')
  for (const { status, body } of await Promise.all(reads)) {
    t.ok(status === 200 || body.code === 'overloaded', `${status}`)
  }
})

test('queues, groups and schedules are listed in pages with a cursor to the next', async (t) => {
  const names = ['page-a', 'page-b', 'page-c', 'page-ä', 'page-😀']
  for (const queue of names) {
    await api.push({ queue, payload: 1 })
    await api.pop(queue, '?consumerGroup=g')
    await api.post('/schedules', { name: queue, queue, cron: '0 0 1 1 *' })
  }
  const walk = async (path: string, list: string, limit: number): Promise<string[]> => {
    const found: string[] = []
    let cursor: string | null = ''
    while (cursor !== null) {
      const { status, body }: Awaited<ReturnType<typeof api.get>> = await api.get(
        `${path}?limit=${limit}${cursor === '' ? '' : `&cursor=${cursor}`}`,
      )
      t.equal(status, 200)
      t.ok(body[list].length <= limit)
      for (const one of body[list]) found.push(one.queue)
      cursor = body.cursor
    }
    return found.filter((name) => name.startsWith('page-'))
  }
  for (const [path, list] of [
    ['/resources/queues', 'queues'],
    ['/consumer-groups', 'groups'],
    ['/schedules', 'schedules'],
  ] as const) {
    const found = await walk(path, list, 2)
    t.same(new Set(found), new Set(names), path)
    t.equal(found.length, names.length, 'each once')
    const whole = await api.get(path)
    t.equal(whole.body.cursor, null, 'without a limit a page has up to a thousand entries')
    t.ok(whole.body[list].length >= names.length)
  }
})

test('an invalid limit or cursor is refused', async (t) => {
  for (const query of ['limit=0', 'limit=1001', 'limit=x', 'cursor=', 'cursor=%25', 'cursor=AA']) {
    const { status, body } = await api.get(`/resources/queues?${query}`)
    t.match([status, body.code], [400, 'invalid_request'], query)
  }
})
