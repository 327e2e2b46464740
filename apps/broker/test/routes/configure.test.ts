// The notification that nodes get when a queue is configured.
import { eventually, testDatabase } from '@rouse/testkit'
import fastify from 'fastify'
import { type Test, test } from 'tap'
import { anonymous } from '../../src/auth/principal.ts'
import { queueRoutes } from '../../src/routes/queues.ts'
import type { BrokerContext } from '../../src/worker/context.ts'

async function startRoute(t: Test) {
  const { pool } = await testDatabase(t)
  const told: Parameters<BrokerContext['tellConfigured']>[] = []
  const context: Pick<BrokerContext, 'pool' | 'tellConfigured' | 'queueChanged'> = {
    pool,
    queueChanged: () => {},
    tellConfigured: (...words) => told.push(words),
  }
  const app = fastify()
  app.decorateRequest('principal', { getter: () => anonymous })
  queueRoutes(app, context as BrokerContext)
  t.teardown(() => app.close())
  /** Configures a queue; returns the notification that nodes get. */
  const configure = async (body: object) => {
    const payload = { queue: 'q', ...body }
    const { statusCode } = await app.inject({ method: 'POST', url: '/api/v1/configure', payload })
    t.equal(statusCode, 200)
    return told.pop()
  }
  const hasMoved = async (body: object) => (await configure(body))?.[2]
  return { pool, configure, hasMoved }
}

test('a notification has namespace, task and version of the queue, and whether it moved', async (t) => {
  const { configure } = await startRoute(t)
  const hint = { queue: 'q', partition: null, group: null, count: 0 }
  const place = { namespace: 'n', task: null }
  t.same(await configure({ namespace: 'n' }), [{ ...hint, ...place }, 2, true])
  t.same(await configure({ options: { leaseTime: 5 } }), [{ ...hint, ...place }, 3, false])
  t.same(await configure({ task: 't' }), [{ ...hint, namespace: 'n', task: 't' }, 4, true])
})

test('a queue counts as moved if its namespace or task changed, or may have changed', async (t) => {
  const { pool, hasMoved } = await startRoute(t)
  t.equal(await hasMoved({}), false)
  t.equal(await hasMoved({ namespace: 'n', task: 't' }), true)
  t.equal(await hasMoved({ namespace: 'n', task: 't' }), false)
  t.equal(await hasMoved({ namespace: 'n' }), false)
  t.equal(await hasMoved({ task: 't', options: { leaseTime: 5 } }), false)
  t.equal(await hasMoved({ namespace: 'other' }), true)
  t.equal(await hasMoved({ task: 'other' }), true)

  await t.test('another session may have moved it there and back', async (t) => {
    const other = await pool.connect()
    t.teardown(() => other.release())
    await other.query('begin')
    await other.query(`update rouse.queues set version = version + 2`)
    const answer = hasMoved({ namespace: 'other' })
    await eventually(async () => {
      const waiting = `select from pg_stat_activity
        where wait_event_type = 'Lock' and datname = current_database()`
      return (await pool.query(waiting)).rowCount === 1
    })
    await other.query('commit')
    t.equal(await answer, true)
  })
})
