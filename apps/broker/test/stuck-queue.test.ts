// A queue that somebody keeps locked is a matter of its own waiters.
import { setTimeout as delay } from 'node:timers/promises'
import { eventually } from '@rouse/testkit'
import { test } from 'tap'
import { apiOf } from './support/http.ts'
import { untilWaiting } from './support/node-state.ts'
import { sharedBroker } from './support/shared-broker.ts'
import { sqlUser } from './support/sql-user.ts'

const node = await sharedBroker({ env: { ROUSE_WORKERS: '1' } })
const api = apiOf(node.url)

test('a queue that an operator keeps busy does not keep waiters of other queues asleep', async (t) => {
  await api.push({ queue: 'stuck', payload: 1 }, { queue: 'other', payload: 1 })
  await api.pop('other', '?autoAck=true')
  const other = api.pop('other', '?wait=true&timeout=30000')
  await untilWaiting(node, 'other', 1)
  // As purge and configure do, for as long as they take.
  const operator = await sqlUser(t, node.database.url)
  await operator.query('begin')
  await operator.query(`select from rouse.queues where name = 'stuck' for no key update`)
  const stuck = ['a', 'b', 'c'].map((group) =>
    api.pop('stuck', `?wait=true&timeout=30000&consumerGroup=${group}`),
  )
  await eventually(async () => {
    const { rows } = await node.database.pool.query(
      `select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`,
    )
    return rows.length === stuck.length
  })
  await api.push({ queue: 'other', payload: 2 })
  const answer = await Promise.race([other, delay(3_000)])
  t.equal((answer as { status?: number } | undefined)?.status, 200, 'woken')
  await operator.query('commit')
  for (const { status } of await Promise.all(stuck)) t.equal(status, 200)
  t.equal((await other).status, 200)
})
