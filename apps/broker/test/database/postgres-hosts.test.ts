// A pool with several hosts when its server dies, freezes or becomes read-only.
import {
  classifyPostgresError,
  createPool,
  OutcomeUnknownError,
  withTransaction,
} from '@rouse/database'
import { eventually, type PostgresPair, startPostgresPair } from '@rouse/testkit'
import type pg from 'pg'
import { type Test, test } from 'tap'

/** Long, because the servers are real and the machine may be busy. */
const patience = { timeoutMs: 60_000, intervalMs: 50 }

async function pairWithPool(t: Test, url?: (pair: PostgresPair) => string) {
  const pair = await startPostgresPair({ synchronous: true })
  await pair.primary.query('create table public.log (line text)')
  await pair.inSync()
  const pool = createPool({ url: url?.(pair) ?? pair.url, max: 4, applicationName: 'hosts' })
  t.teardown(async () => {
    await pool.end()
    await pair.stop()
  })
  return { pair, pool }
}

async function portOf(pool: pg.Pool): Promise<number> {
  const { rows } = await pool.query(`select current_setting('port')::int as port`)
  return rows[0].port
}

function write(pool: pg.Pool, line: string): Promise<unknown> {
  return pool.query('insert into public.log values ($1)', [line])
}

test('the host that accepts writes is used, whatever the order of the hosts', async (t) => {
  const { pair, pool } = await pairWithPool(t, ({ primary, standby }) => {
    return `postgres://postgres@127.0.0.1:${standby.port},127.0.0.1:${primary.port}/postgres`
  })
  t.equal(await portOf(pool), pair.primary.port)
})

test('a pool follows a failover, and the old primary is not written to again', async (t) => {
  const { pair, pool } = await pairWithPool(t)
  await write(pool, '1 before')
  const [old, next] = [pair.primary, pair.standby]
  await old.kill()
  const failure = await write(pool, 'lost').catch((error: unknown) => error)
  t.equal(classifyPostgresError(failure), 'unavailable')
  await pair.promoteStandby()
  await eventually(() => write(pool, '2 after').then(() => true), patience)
  t.equal(await portOf(pool), next.port)

  await pair.rebuildStandby()
  await Promise.all(Array.from({ length: 8 }, (_, i) => write(pool, `3 with standby ${i}`)))
  t.equal(await portOf(pool), next.port)
  await pair.inSync()
  const rows = await old.query<{ line: string }>('select line from public.log order by line')
  t.equal(rows.length, 10, 'the old server has it by streaming only')
})

test('a frozen server is abandoned, and its open calls have an unknown outcome', async (t) => {
  const { pair, pool } = await pairWithPool(t)
  await Promise.all(Array.from({ length: 4 }, (_, i) => write(pool, `before ${i}`)))
  t.equal(pool.idleCount, 4)
  pair.primary.freeze()
  const failures = await Promise.all(
    Array.from({ length: 4 }, () => write(pool, 'silent').catch((error: unknown) => error)),
  )
  t.same(failures.map(classifyPostgresError), Array(4).fill('unavailable'))
  await pair.promoteStandby()
  await eventually(() => write(pool, 'after').then(() => true), patience)
  t.equal(await portOf(pool), pair.primary.port)
  t.equal(pair.standby.running, true, 'the old server is still frozen')
})

test('a slow statement on a live server is not abandoned', async (t) => {
  const { pool } = await pairWithPool(t)
  // The statement takes longer than a pool needs to suspect a silent server and abandon it.
  const { rows } = await pool.query(`select 'done' as said from pg_sleep(7)`)
  t.same(rows, [{ said: 'done' }])
})

test('a read-only server is abandoned for one that accepts writes', async (t) => {
  const { pair, pool } = await pairWithPool(t)
  const held = await pool.connect()
  await held.query('select 1')
  const first = pair.primary
  await first.query('alter system set default_transaction_read_only = on')
  await first.query('select pg_reload_conf()')
  // A client that was checked out during the change does not know yet that the server is read-only.
  const failure = await eventually(
    () =>
      held.query(`insert into public.log values ('refused')`).then(
        () => undefined,
        (error: unknown) => error,
      ),
    patience,
  )
  t.match(failure, { code: '25006' })
  held.release()
  await eventually(() => pool.totalCount === 0, patience)
  const refused = await write(pool, 'nowhere').catch((error: unknown) => error)
  t.match(refused, { name: 'DatabaseHostError', code: 'no_writable_server' })
  t.equal(classifyPostgresError(refused), 'unavailable')
  await pair.promoteStandby()
  await eventually(() => write(pool, 'there').then(() => true), patience)
  t.equal(await portOf(pool), pair.primary.port)
})

test('a commit that the standby did not confirm has an unknown outcome, whichever way it was sent', async (t) => {
  const { pair, pool } = await pairWithPool(t)
  const cancelWaits = async () => {
    await eventually(async () => {
      const rows = await pair.primary.query(
        `select pg_cancel_backend(pid) from pg_stat_activity where wait_event = 'SyncRep'`,
      )
      return rows.length > 0
    }, patience)
  }
  await pair.standby.kill()
  const insert = `insert into public.log values ('unconfirmed')`
  const ways: Record<string, () => Promise<unknown>> = {
    'pool.query': () => pool.query(insert),
    'a client of the pool': async () => {
      const client = await pool.connect()
      return client.query(insert).finally(() => client.release())
    },
    'a transaction': () => withTransaction(pool, (client) => client.query(insert)),
  }
  for (const [way, ask] of Object.entries(ways)) {
    const asked = ask().catch((error: unknown) => error)
    await cancelWaits()
    t.type(await asked, OutcomeUnknownError, way)
  }
  t.equal(
    (await pool.query('select from public.log')).rowCount,
    3,
    'all of them are stored nevertheless',
  )
})
