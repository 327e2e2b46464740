// When the server refuses another connection, a pool keeps working with the connections that it has.
import { randomBytes } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import type pg from 'pg'
import { type Test, test } from 'tap'
import { ConnectionLimit } from '../../src/hosts/connection-limit.ts'
import {
  classifyPostgresError,
  createPool,
  type PoolLimit,
  provesNotCommitted,
} from '../../src/index.ts'
import { emptyDatabase } from '../support/server.ts'

const max = 8

/** Creates a pool that connects as a role with this connection limit. */
async function limitedPool(t: Test, connections: number) {
  const { url, pool: admin } = await emptyDatabase(t)
  const role = `limited_${randomBytes(6).toString('hex')}`
  await admin.query(`create role ${role} login password 'x' connection limit ${connections}`)
  const own = new URL(url)
  own.username = role
  own.password = 'x'
  const heard: PoolLimit[] = []
  const pool = createPool({
    url: own.href,
    max,
    applicationName: 'limited',
    onLimit: (limit) => heard.push(limit),
    random: () => 0,
  })
  t.teardown(async () => {
    await pool.end()
    await admin.query(`drop role ${role}`)
  })
  return {
    pool,
    heard,
    allow: (count: number) => admin.query(`alter role ${role} connection limit ${count}`),
  }
}

/** Checks out all connections of the pool, keeps them until the condition holds, and releases them. */
async function holdAll(pool: pg.Pool, until: () => boolean): Promise<void> {
  const clients: pg.PoolClient[] = []
  const taking = Array.from({ length: max }, async () => {
    const client = await pool.connect()
    clients.push(client)
    while (!until()) await delay(1)
    client.release()
  })
  await Promise.all(taking)
}

test('the available connections serve all callers, and the limit is reported once', async (t) => {
  const { pool, heard, allow } = await limitedPool(t, 3)
  let served = 0
  await holdAll(pool, () => pool.totalCount <= 3)
  await Promise.all(
    Array.from({ length: 50 }, async () => {
      await pool.query('select 1')
      served += 1
    }),
  )
  t.equal(served, 50)
  t.equal(pool.totalCount, 3)
  t.equal(pool.options.max, 3)
  while (heard.length === 0) await delay(5)
  t.match(heard, [{ limit: 3, max, reason: /too many connections/ }])
  t.equal(heard.length, 1)

  await allow(-1)
  while (heard.length < 2) await delay(5)
  t.match(heard[1], { limit: max, max })
  t.equal(pool.options.max, max)
  await holdAll(pool, () => pool.totalCount === max)
})

test('without any connection the server is unavailable, until it accepts one again', async (t) => {
  const { pool, heard, allow } = await limitedPool(t, 0)
  const error = await pool.query('select 1').then(
    () => undefined,
    (reason: unknown) => reason,
  )
  t.equal(classifyPostgresError(error), 'unavailable')
  t.ok(provesNotCommitted(error))
  await allow(1)
  t.match(await pool.query('select 1'), { rowCount: 1 })
  while (heard.length === 0) await delay(5)
  t.match(heard, [{ limit: 1 }])
})

test('a limited pool grows in steps, and tests less often after a refusal', async (t) => {
  const limit = new ConnectionLimit(16, () => 0)
  t.notOk(limit.isLimited)
  for (const connected of [0, 2, 5]) limit.refused(connected)
  limit.connected(5)
  t.match([limit.current, limit.pauseMs], [5, 500], 'a burst counts as one failure')
  limit.testSucceeded()
  t.match([limit.current, limit.isLimited], [10, true])
  for (const connected of [7, 7, 7]) limit.refused(connected)
  t.match([limit.current, limit.pauseMs], [7, 1_000])
  for (let n = 0; n < 10; n += 1) limit.testFailed()
  t.equal(limit.pauseMs, 15_000, 'at most half a minute')
  limit.testSucceeded()
  limit.testSucceeded()
  t.match([limit.current, limit.isLimited, limit.pauseMs], [16, false, 500])
})

test('every form of "too many connections" is recognised', async (t) => {
  for (const [code, message] of [
    ['53300', 'too many connections for role "rouse"'],
    ['53300', 'too many connections for database "rouse"'],
    ['53300', 'remaining connection slots are reserved for roles with the SUPERUSER attribute'],
    ['53300', 'désolé, trop de clients sont déjà connectés'],
    ['08P01', 'no more connections allowed (max_client_conn)'],
    ['08P01', 'server login failed: FATAL sorry, too many clients already'],
  ] as const) {
    const error = Object.assign(new Error(message), { code, severity: 'FATAL' })
    t.equal(classifyPostgresError(error), 'unavailable', message)
    t.ok(provesNotCommitted(error), message)
  }
  const lost = Object.assign(new Error('server conn crashed?'), {
    code: '08P01',
    severity: 'FATAL',
  })
  t.notOk(provesNotCommitted(lost))
})
