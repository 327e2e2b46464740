import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { type Test, test } from 'tap'
import { createPool, OutcomeUnknownError, withTransaction } from '../src/index.ts'
import { emptyDatabase } from './support/server.ts'

test('the work is committed and its result returned', async (t) => {
  const { pool } = await emptyDatabase(t)
  await pool.query('create table log (line text)')
  const result = await withTransaction(pool, async (client) => {
    await client.query(`insert into log values ('kept')`)
    return 'done'
  })
  t.equal(result, 'done')
  t.same((await pool.query('select line from log')).rows, [{ line: 'kept' }])
})

test('work that fails leaves nothing behind, and its connection is reused', async (t) => {
  const { pool } = await emptyDatabase(t)
  await pool.query('create table log (line text)')
  const failing = withTransaction(pool, async (client) => {
    await client.query(`insert into log values ('lost')`)
    throw new Error('changed my mind')
  })
  await t.rejects(failing, { message: 'changed my mind' })
  t.same((await pool.query('select line from log')).rows, [])
  t.equal(pool.totalCount, 1)
})

test('a connection that dies during the work is discarded', async (t) => {
  const { pool } = await emptyDatabase(t)
  const failing = withTransaction(pool, (client) =>
    client.query('select pg_terminate_backend(pg_backend_pid())'),
  )
  await t.rejects(failing, { code: '57P01' })
  t.equal(pool.totalCount, 0)
})

test('an error swallowed by the work does not become a silent success', async (t) => {
  const { pool } = await emptyDatabase(t)
  const failing = withTransaction(pool, async (client) => {
    await client.query('select 1 / 0').catch(() => {})
  })
  await t.rejects(failing, { message: /rolled back at commit/ })
})

test('a constraint that fails at commit is an ordinary failure', async (t) => {
  const { pool } = await emptyDatabase(t)
  await pool.query('create table log (id int unique deferrable initially deferred)')
  const failing = withTransaction(pool, (client) => client.query('insert into log values (1), (1)'))
  await t.rejects(failing, { code: '23505' })
})

test('a connection cut during COMMIT has an unknown outcome', async (t) => {
  const { url } = await emptyDatabase(t)
  const pool = createPool({ url: await cutAt(t, url, 'commit\0'), max: 1, applicationName: 'cut' })
  t.teardown(() => pool.end())
  const failing = withTransaction(pool, (client) => client.query('select 1'))
  await t.rejects(failing, { name: 'OutcomeUnknownError', code: 'outcome_unknown' })
  const error = await failing.catch((error: unknown) => error)
  t.type(error, OutcomeUnknownError)
})

/** Starts a relay to the server that cuts the connection when the client sends `word`. Returns its URL. */
async function cutAt(t: Test, url: string, word: string): Promise<string> {
  const target = new URL(url)
  const sockets = new Set<Socket>()
  const relay = createServer((inner) => {
    const outer = connect(Number(target.port), target.hostname)
    for (const socket of [inner, outer]) {
      sockets.add(socket)
      socket.on('error', () => {})
    }
    outer.pipe(inner)
    inner.on('data', (bytes) => {
      if (bytes.includes(word)) inner.destroy()
      else outer.write(bytes)
    })
  })
  await new Promise<void>((resolve) => relay.listen(0, '127.0.0.1', resolve))
  t.teardown(() => {
    for (const socket of sockets) socket.destroy()
    relay.close()
  })
  const relayed = new URL(url)
  relayed.port = String((relay.address() as AddressInfo).port)
  return relayed.href
}
