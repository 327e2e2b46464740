import { type AddressInfo, connect, createServer } from 'node:net'
import { test } from 'tap'
import { createPool, sessionSettings, shadowsBuiltIns, withTransaction } from '../../src/index.ts'
import { emptyDatabase } from '../support/server.ts'

/** The protocol message ReadyForQuery, outside a transaction. */
const readyForQuery = Buffer.from([0x5a, 0, 0, 0, 5, 0x49])

const hostile = {
  default_transaction_isolation: `'serializable'`,
  search_path: 'public, pg_catalog',
  DateStyle: `'German'`,
  extra_float_digits: '-15',
  standard_conforming_strings: 'off',
  array_nulls: 'off',
  client_min_messages: 'error',
  lock_timeout: '1',
  statement_timeout: `'1min'`,
  idle_in_transaction_session_timeout: '1',
  idle_session_timeout: `'1min'`,
}

test('a direct connection has our settings, whatever the database has set', async (t) => {
  const { pool: admin, url } = await emptyDatabase(t)
  const name = url.split('/').at(-1)
  for (const [setting, value] of Object.entries(hostile)) {
    await admin.query(`alter database ${name} set ${setting} = ${value}`)
  }
  const pool = createPool({ url, max: 1, applicationName: 'ours' })
  t.teardown(() => pool.end())
  for (const { name, value, isHarmful } of sessionSettings) {
    const { rows } = await pool.query('select current_setting($1, true) as found', [name])
    const found: string | null = rows[0].found
    if (found !== null) t.equal(found, value, name)
    if (found !== null) t.notOk(isHarmful(found), name)
  }
  const { rows } = await pool.query('select $1::timestamptz as at', ['2026-11-17T00:00:00Z'])
  t.same(rows, [{ at: new Date('2026-11-17T00:00:00Z') }])
  const level = await withTransaction(pool, (client) => client.query('show transaction_isolation'))
  t.same(level.rows, [{ transaction_isolation: 'read committed' }])

  const plain = createPool({ url, max: 1, applicationName: 'theirs', keepSettings: true })
  t.teardown(() => plain.end())
  const kept = await plain.query('show default_transaction_isolation')
  t.same(kept.rows, [{ default_transaction_isolation: 'serializable' }])
})

test('a function or operator in the search path that shadows a built-in one is found', async (t) => {
  const { pool } = await emptyDatabase(t)
  const client = await pool.connect()
  t.teardown(() => client.release())
  const found = async (path: string) => {
    await client.query(`set search_path = ${path}`)
    return shadowsBuiltIns(client)
  }
  t.equal(await found('public'), false)
  await client.query(`
    create schema trap;
    create type trap.own as (a int);
    create function trap.length(trap.own) returns int language sql as 'select 1';
    create function trap.gen_random_uuid() returns uuid language sql as 'select null::uuid';`)
  t.equal(await found('trap, public'), false, 'for its own types; and after pg_catalog')
  t.equal(await found('trap, pg_catalog'), true, 'before pg_catalog')
  await client.query(
    `create function trap.array_position(text[], text) returns int language sql as 'select 1'`,
  )
  t.equal(await found('trap, public'), true, 'a closer match than a polymorphic built-in')
  t.equal(await found('public'), false)
  await client.query(`
    create schema signs;
    create function signs.joined(bigint[], bigint) returns bigint[] language sql as 'select $1';
    create operator signs.|| (leftarg = bigint[], rightarg = bigint, function = signs.joined);`)
  t.equal(await found('signs'), true, 'an operator')
})

test('a connection that is reset during session start fails its query, not the process', async (t) => {
  const { url } = await emptyDatabase(t)
  const target = new URL(url)
  const { hostname: host, port } = target
  let resets = 0
  // The proxy forwards everything until the server is ready for the first statement. It resets the connection
  // when the client sends that statement.
  const proxy = createServer((client) => {
    const server = connect({ host, port: Number(port) })
    let isReady = false
    server.on('data', (data) => {
      isReady ||= data.includes(readyForQuery)
      client.write(data)
    })
    client.on('data', (data) => {
      if (!isReady) return void server.write(data)
      resets += 1
      client.resetAndDestroy()
      server.destroy()
    })
    for (const socket of [client, server]) socket.on('error', () => {})
  })
  await new Promise<void>((resolve) => proxy.listen(0, '127.0.0.1', resolve))
  t.teardown(() => proxy.close())
  target.port = String((proxy.address() as AddressInfo).port)
  const pool = createPool({ url: target.href, max: 1, applicationName: 'reset' })
  t.teardown(() => pool.end())
  await t.rejects(pool.query('select 1'))
  t.ok(resets > 0, 'it was reset during session start')
})
