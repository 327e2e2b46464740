import { test } from 'tap'
import { createPool, migrate } from '../../src/index.ts'
import { emptyDatabase } from '../support/server.ts'

test('a connection killed while idle is replaced without an error', async (t) => {
  const { pool } = await emptyDatabase(t)
  const first = await pool.query('select pg_backend_pid() as pid')
  const removed = new Promise((resolve) => pool.once('remove', resolve))
  const { pool: other } = await emptyDatabase(t)
  await other.query('select pg_terminate_backend($1)', [first.rows[0].pid])
  await removed
  const second = await pool.query('select pg_backend_pid() as pid')
  t.not(second.rows[0].pid, first.rows[0].pid)
})

test('a connection killed between two queries of its holder does not crash the process', async (t) => {
  const { pool } = await emptyDatabase(t)
  const client = await pool.connect()
  const ended = new Promise<void>((resolve) => client.once('end', resolve))
  const { rows } = await client.query('select pg_backend_pid() as pid')
  await pool.query('select pg_terminate_backend($1)', [rows[0].pid])
  await ended
  await t.rejects(client.query('select 1'))
  client.release(true)
})

test('a bigint stays text, because a number would lose digits', async (t) => {
  const { pool } = await emptyDatabase(t)
  const { rows } = await pool.query('select 9007199254740993::bigint as big')
  t.same(rows, [{ big: '9007199254740993' }])
})

test('a pool passes its name and its timeouts to the server', async (t) => {
  const { url } = await emptyDatabase(t)
  const pool = createPool({ url, max: 1, applicationName: 'named', statementTimeoutMs: 1_234 })
  t.teardown(() => pool.end())
  const { rows } = await pool.query(
    `select current_setting('application_name') as name, current_setting('statement_timeout') as ms`,
  )
  t.same(rows, [{ name: 'named', ms: '1234ms' }])
})

test('an unreachable host is skipped in any order', async (t) => {
  const { url } = await emptyDatabase(t)
  const { host } = new URL(url)
  for (const hosts of [`127.0.0.1:1,${host}`, `${host},127.0.0.1:1`]) {
    const several = url.replace(host, hosts)
    const pool = createPool({ url: several, max: 2, applicationName: 'several' })
    t.teardown(() => pool.end())
    t.same((await pool.query('select 1 as one')).rows, [{ one: 1 }])
    const { applied } = await migrate({ url: several, dryRun: true })
    t.ok(applied.length > 0, 'a migration finds the server, too')
  }
})

test('if no host is reachable, the error gives the reason for each of them', async (t) => {
  const url = 'postgres://postgres@127.0.0.1:1,127.0.0.1:2/none'
  const pool = createPool({ url, max: 2, applicationName: 'several' })
  t.teardown(() => pool.end())
  await t.rejects(pool.query('select 1'), {
    name: 'DatabaseHostError',
    code: 'no_writable_server',
    message: /127\.0\.0\.1:1.*127\.0\.0\.1:2|127\.0\.0\.1:2.*127\.0\.0\.1:1/,
  })
})
