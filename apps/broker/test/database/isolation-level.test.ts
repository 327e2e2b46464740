// Under repeatable read, a push that waited for a pop would not see that the pop settled the lane, and would
// wake no waiter.
import { eventually, pgbouncerMissing, startPgbouncer, testDatabase } from '@rouse/testkit'
import { type Test, test } from 'tap'
import { startBroker } from '../support/broker.ts'
import { apiOf } from '../support/http.ts'

for (const way of ['direct', 'pgbouncer'] as const) {
  for (const level of ['repeatable read', 'serializable'] as const) {
    const skip = way === 'pgbouncer' && pgbouncerMissing
    const options = { skip, timeout: 60_000 }
    test(
      `a push that waits for a pop settling its lane is delivered (${level}, ${way})`,
      options,
      (t) => pushBehindPop(t, way, level),
    )
  }
}

async function pushBehindPop(t: Test, way: string, level: string): Promise<void> {
  const database = await testDatabase(t)
  const name = database.url.split('/').at(-1)
  await database.pool.query(`alter database ${name} set default_transaction_isolation = '${level}'`)
  const env: Record<string, string> = {
    ROUSE_WORKERS: '1',
    ROUSE_DATABASE_URL: database.url,
    ROUSE_LISTEN_URL: database.url,
  }
  if (way === 'pgbouncer') {
    const pgbouncer = await startPgbouncer(database.url)
    t.teardown(() => pgbouncer.stop())
    env.ROUSE_DATABASE_URL = pgbouncer.through(database.url)
  }
  const node = await startBroker(t, { database, env })
  const api = apiOf(node.url)
  await api.push({ queue: 'q', payload: 0 })
  await api.ack((await api.pop('q')).body.messages[0])

  await api.push({ queue: 'q', payload: 1 })
  const barrier = await database.armBarrier('pop-lane-settling')
  const popping = api.pop('q')
  await barrier.reached()
  const pushing = api.push({ queue: 'q', payload: 2 })
  await eventually(async () => {
    const { rows } = await database.pool.query(
      `select from pg_stat_activity
       where datname = current_database() and wait_event_type = 'Lock' and wait_event <> 'advisory'`,
    )
    return rows.length === 1
  })
  await barrier.release()
  const popped = await popping
  t.match(popped.body, { messages: [{ data: 1 }] })
  t.equal((await pushing).status, 201)
  await api.ack(popped.body.messages[0])
  t.match(await api.pop('q'), { status: 200, body: { messages: [{ data: 2 }] } })
}
