// A node whose database role allows fewer connections than the node wants.
import { randomBytes } from 'node:crypto'
import { eventually, testDatabase } from '@rouse/testkit'
import { test } from 'tap'
import { startBroker } from '../support/broker.ts'
import { apiOf, send } from '../support/http.ts'

const clients = 44
const pushesEach = 10

test('a node at the connection limit of its role fails no request, and logs the limit once', async (t) => {
  const database = await testDatabase(t, { instrumented: false })
  const role = `limited_${randomBytes(6).toString('hex')}`
  await database.pool.query(`create role ${role} login password 'x'`)
  t.teardown(() =>
    database.pool
      .query(`reassign owned by ${role} to current_user; drop owned by ${role}; drop role ${role}`)
      .catch(() => {}),
  )
  await database.pool.query(`
    grant all on schema rouse to ${role};
    grant all on all tables in schema rouse to ${role};
    grant all on all sequences in schema rouse to ${role};
    grant execute on all functions in schema rouse to ${role}`)
  const url = new URL(database.url)
  url.username = role
  url.password = 'x'
  const node = await startBroker(t, {
    database,
    env: { ROUSE_DATABASE_URL: url.href, ROUSE_LISTEN_URL: url.href, ROUSE_MIGRATE: 'off' },
  })
  const api = apiOf(node.url)
  await api.push({ queue: 'q', payload: 0 })
  await database.pool.query(`alter role ${role} connection limit 12`)
  const work = async (client: number): Promise<number[]> => {
    const statuses: number[] = []
    for (let n = 0; n < pushesEach; n += 1) {
      const queue = `q${client}`
      statuses.push((await api.push({ queue, payload: n })).status)
      const popped = await api.pop(queue, '?wait=true&timeout=5000')
      statuses.push(popped.status)
      const [message] = popped.body?.messages ?? []
      if (message !== undefined) statuses.push((await api.ack(message)).status)
    }
    return statuses
  }
  const statuses = (await Promise.all(Array.from({ length: clients }, (_, n) => work(n)))).flat()
  t.same(new Set(statuses), new Set([200, 201]))

  const limited = () =>
    node.log.filter(({ msg }) => /rejects further connections/.test(String(msg)))
  const processes = new Set(limited().map(({ process }) => process))
  t.ok(processes.size > 0, 'it is logged')
  t.equal(limited().length, processes.size, 'once per process')
  const pools = async () => {
    const { body } = await send('GET', `${node.url}/stats`)
    return Object.values(body.pool as Record<string, { limit: number; max: number }>)
  }
  t.ok(
    (await pools()).some(({ limit, max }) => limit < max),
    '/stats reports it',
  )

  await database.pool.query(`alter role ${role} connection limit -1`)
  await eventually(async () => (await pools()).every(({ limit, max }) => limit === max), {
    timeoutMs: 90_000,
  })
})
