import { fileURLToPath } from 'node:url'
import type pg from 'pg'
import { test } from 'tap'
import { testDatabase } from '../src/index.ts'

const directory = fileURLToPath(new URL('./migrations', import.meta.url))

async function now(pool: pg.Pool): Promise<Date> {
  return (await pool.query('select rouse.now() as now')).rows[0].now
}

test('each test has its own migrated database', async (t) => {
  const one = await testDatabase(t, { directory })
  const two = await testDatabase(t, { directory })
  await one.pool.query('select rouse.bump()')
  t.same((await one.pool.query('select value from rouse.counter')).rows, [{ value: 1 }])
  t.same((await two.pool.query('select value from rouse.counter')).rows, [{ value: 0 }])
})

test('a database is dropped with its test, even while a client is connected', async (t) => {
  let name = ''
  await t.test('inner', async (t) => {
    const { pool } = await testDatabase(t, { directory })
    await pool.connect().then((client) => client.query('begin'))
    name = (await pool.query('select current_database() as name')).rows[0].name
  })
  const { pool } = await testDatabase(t, { directory })
  t.equal((await pool.query('select from pg_database where datname = $1', [name])).rowCount, 0)
})

test('databases requested at the same time share one template', async (t) => {
  const databases = await Promise.all([1, 2, 3, 4].map(() => testDatabase(t, { directory })))
  t.equal(new Set(databases.map(({ url }) => url)).size, 4)
})

test('content is created once, and each database has its own copy of it', async (t) => {
  let created = 0
  const content = {
    name: 'two bumps',
    async create(pool: pg.Pool) {
      created += 1
      await pool.query('select rouse.bump(), rouse.bump()')
    },
  }
  const options = { directory, content }
  const [one, two] = await Promise.all([testDatabase(t, options), testDatabase(t, options)])
  await one.pool.query('select rouse.bump()')
  const value = async (pool: pg.Pool) =>
    (await pool.query('select value from rouse.counter')).rows[0].value
  t.equal(await value(one.pool), 3)
  t.equal(await value(two.pool), 2)
  t.equal(await value((await testDatabase(t, { directory })).pool), 0, 'without content')
  t.ok(created <= 1)
})

test('a frozen clock stands still until it is advanced', async (t) => {
  const { pool, freezeClock, advanceClock } = await testDatabase(t, { directory })
  await freezeClock('2026-01-01T00:00:00Z')
  t.equal((await now(pool)).toISOString(), '2026-01-01T00:00:00.000Z')
  await advanceClock(90_000)
  t.equal((await now(pool)).toISOString(), '2026-01-01T00:01:30.000Z')
})

test('a running clock can be advanced, and returned to real time', async (t) => {
  const { pool, freezeClock, advanceClock, thawClock } = await testDatabase(t, { directory })
  const hourMs = 3_600_000
  await advanceClock(hourMs)
  t.ok((await now(pool)).getTime() - Date.now() > hourMs / 2)
  await freezeClock(0)
  await thawClock()
  t.ok(Math.abs((await now(pool)).getTime() - Date.now()) < hourMs / 2)
})

test('an armed barrier stops two callers at the same line and releases both', async (t) => {
  const { pool, armBarrier } = await testDatabase(t, { directory })
  const barrier = await armBarrier('between-read-and-write')
  const calls = [pool.query('select rouse.bump() as n'), pool.query('select rouse.bump() as n')]
  const { pids } = await barrier.reached(2)
  t.equal(pids.length, 2)
  await barrier.release()
  const answers = await Promise.all(calls)
  t.same(
    answers.map(({ rows }) => rows[0].n),
    [1, 1],
    'both had read before either wrote',
  )
})

test('a barrier that is not armed stops no caller', async (t) => {
  const { pool } = await testDatabase(t, { directory })
  t.same((await pool.query('select rouse.bump() as n')).rows, [{ n: 1 }])
  t.equal((await pool.query(`select from pg_locks where locktype = 'advisory'`)).rowCount, 0)
})

test('a barrier left armed is released at the end of its test', async (t) => {
  let call: Promise<unknown> = Promise.resolve()
  await t.test('inner', async (t) => {
    const { pool, armBarrier } = await testDatabase(t, { directory })
    const barrier = await armBarrier('between-read-and-write')
    call = pool.query('select rouse.bump()').catch((error: unknown) => error)
    await barrier.reached()
  })
  await call
  t.pass('the stopped call ended')
})

test('without instrumentation the functions are those of production', async (t) => {
  const { pool } = await testDatabase(t, { directory, instrumented: false })
  const { rows } = await pool.query(`select prosrc from pg_proc where proname = 'bump'`)
  t.match(rows[0].prosrc, '-- barrier: between-read-and-write')
  t.equal((await pool.query(`select to_regnamespace('rouse_test') as found`)).rows[0].found, null)
})

test('a production migration of the folder keeps the instrumented functions', async (t) => {
  const { pool } = await testDatabase(t, { directory })
  const { migrate } = await import('@rouse/database')
  t.same(await migrate({ pool, directory }), { applied: [], functions: [] })
})

test("the repository's migrations make a template", async (t) => {
  const { pool } = await testDatabase(t)
  const { rows } = await pool.query(`select to_regclass('rouse.migrations') is not null as found`)
  t.same(rows, [{ found: true }])
})
