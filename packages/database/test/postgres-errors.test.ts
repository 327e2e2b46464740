import type pg from 'pg'
import { test } from 'tap'
import {
  classifyPostgresError,
  createPool,
  OutcomeUnknownError,
  provesNotCommitted,
  startEmbeddedPostgres,
} from '../src/index.ts'
import { emptyDatabase } from './support/server.ts'

async function failureOf(call: Promise<unknown>): Promise<unknown> {
  return call.then(
    () => undefined,
    (error: unknown) => error,
  )
}

async function raised(pool: pg.Pool, code: string): Promise<unknown> {
  return failureOf(pool.query(`do $$ begin raise 'told' using errcode = '${code}'; end $$`))
}

test('a backend terminated during a query is unavailable', async (t) => {
  const { pool } = await emptyDatabase(t)
  const client = await pool.connect()
  const { rows } = await client.query('select pg_backend_pid() as pid')
  const failure = failureOf(client.query('select pg_sleep(60)'))
  await pool.query('select pg_terminate_backend($1)', [rows[0].pid])
  t.equal(classifyPostgresError(await failure), 'unavailable')
  t.equal(provesNotCommitted(await failure), false, 'it may be terminated after its commit')
  client.release(true)
})

test('a server killed during a query is unavailable, and stays so', async (t) => {
  const server = await startEmbeddedPostgres()
  t.teardown(() => server.stop())
  const pool = createPool({ url: server.url, max: 2, applicationName: 'killed' })
  t.teardown(() => pool.end())
  const client = await pool.connect()
  const pid = (await client.query('select pg_backend_pid() as pid')).rows[0].pid
  const failure = failureOf(client.query('select pg_sleep(60)'))
  process.kill(pid, 'SIGKILL')
  const lost = await failure
  t.equal(classifyPostgresError(lost), 'unavailable')
  t.equal(provesNotCommitted(lost), false)
  client.release(true)

  server.kill('SIGKILL')
  await server.exited
  const refused = await failureOf(pool.query('select 1'))
  t.equal(classifyPostgresError(refused), 'unavailable')
})

test('a refused connection is unavailable and proves that nothing was done', async (t) => {
  const url = 'postgres://none@127.0.0.1:1/none'
  const pool = createPool({ url, max: 1, applicationName: 'refused' })
  t.teardown(() => pool.end())
  const failure = await failureOf(pool.query('select 1'))
  t.equal(classifyPostgresError(failure), 'unavailable')
  t.equal(provesNotCommitted(failure), true)
})

test('a connection timeout is unavailable', async (t) => {
  const { url } = await emptyDatabase(t)
  const pool = createPool({ url, max: 1, applicationName: 'busy', connectTimeoutMs: 500 })
  const client = await pool.connect()
  const failure = await failureOf(pool.query('select 1'))
  t.equal(classifyPostgresError(failure), 'unavailable')
  t.equal(provesNotCommitted(failure), true)
  client.release()
  await pool.end()
})

test('a read-only server is unavailable for writes', async (t) => {
  const { pool } = await emptyDatabase(t)
  const failure = await failureOf(
    pool.query('set local transaction read only; create table nothing ()'),
  )
  t.equal(classifyPostgresError(failure), 'unavailable')
})

test('a lock timeout is retryable', async (t) => {
  const { pool } = await emptyDatabase(t)
  const holder = await pool.connect()
  await holder.query('begin; create table held (); commit; begin; lock table held')
  const failure = await failureOf(pool.query(`set local lock_timeout = 10; lock table held`))
  t.equal(classifyPostgresError(failure), 'retryable')
  await holder.query('rollback')
  holder.release()
})

test('a statement timeout is retryable', async (t) => {
  const { pool } = await emptyDatabase(t)
  const failure = await failureOf(
    pool.query('set local statement_timeout = 10; select pg_sleep(9)'),
  )
  t.equal(classifyPostgresError(failure), 'retryable')
})

test('the victim of a deadlock is retryable', async (t) => {
  const { pool } = await emptyDatabase(t)
  await pool.query('create table one (); create table two ()')
  const [a, b] = await Promise.all([pool.connect(), pool.connect()])
  for (const client of [a, b]) await client.query(`set deadlock_timeout = '10ms'`)
  await a.query('begin; lock table one')
  await b.query('begin; lock table two')
  const failures = await Promise.all([
    failureOf(a.query('lock table two; rollback')),
    failureOf(b.query('lock table one; rollback')),
  ])
  await Promise.all([a.query('rollback'), b.query('rollback')])
  const errors = failures.filter((failure) => failure !== undefined)
  t.same(errors.map(classifyPostgresError), ['retryable'])
  a.release()
  b.release()
})

test('a prepared statement whose table changed is retryable', async (t) => {
  const { pool } = await emptyDatabase(t)
  await pool.query('create table shape (a int)')
  const client = await pool.connect()
  const statement = { name: 'all', text: 'select * from shape' }
  await client.query(statement)
  await pool.query('alter table shape add b int')
  const failure = await failureOf(client.query(statement))
  t.equal(classifyPostgresError(failure), 'retryable')
  client.release()
})

test('each RS code has its class', async (t) => {
  const { pool } = await emptyDatabase(t)
  t.equal(classifyPostgresError(await raised(pool, 'RS001')), 'retryable')
  t.equal(classifyPostgresError(await raised(pool, 'RS409')), 'conflict')
  t.equal(classifyPostgresError(await raised(pool, 'RS002')), 'invalid')
})

test('bad input is invalid, a defect is other', async (t) => {
  const { pool } = await emptyDatabase(t)
  t.equal(classifyPostgresError(await failureOf(pool.query(`select 'x'::int`))), 'invalid')
  t.equal(classifyPostgresError(await failureOf(pool.query('select nothing'))), 'other')
  t.equal(classifyPostgresError(new TypeError('a defect')), 'other')
  t.equal(classifyPostgresError('not an error'), 'other')
})

test('an unknown outcome has its own class', async (t) => {
  t.equal(classifyPostgresError(new OutcomeUnknownError(undefined)), 'outcome_unknown')
})

test('a session that the server ended proves nothing, unless it never started', async (t) => {
  const said = (severity: string, code: string) =>
    Object.assign(new Error('told'), { severity, code })
  // These are codes of a failed WAL flush, after which recovery may still find the commit.
  for (const code of ['58030', '53100', 'XX000']) {
    t.equal(classifyPostgresError(said('PANIC', code)), 'unavailable')
    t.equal(provesNotCommitted(said('PANIC', code)), false)
  }
  for (const code of ['57P01', '57P02', '57P05', '25P03', '40001']) {
    t.equal(classifyPostgresError(said('FATAL', code)), 'unavailable')
    t.equal(provesNotCommitted(said('FATAL', code)), false)
  }
  for (const code of ['57P03', '53300']) {
    t.equal(classifyPostgresError(said('FATAL', code)), 'unavailable')
    t.equal(provesNotCommitted(said('FATAL', code)), true)
  }
  for (const code of ['28P01', '3D000']) {
    t.equal(classifyPostgresError(said('FATAL', code)), 'other', 'waiting would not help')
    t.equal(provesNotCommitted(said('FATAL', code)), true)
  }
  t.equal(provesNotCommitted(said('ERROR', '53100')), true, 'a table could not grow')
  t.equal(provesNotCommitted(said('PANIK', '58030')), false, 'in any language')
})

test('an error with several addresses is classified by the first', async (t) => {
  const refused = Object.assign(new Error('refused'), { code: 'ECONNREFUSED' })
  const failure = new AggregateError([refused, refused])
  t.equal(classifyPostgresError(failure), 'unavailable')
  t.equal(provesNotCommitted(failure), true)
})
