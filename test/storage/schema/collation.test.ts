// Names and keys are indexed by their bytes. The migration that introduced this can run under traffic.
import { randomUUID } from 'node:crypto'
import { cpSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { migrate, migrationsDirectory } from '@rouse/database'
import { ack, enqueue, pop, promoteDue, push } from '@rouse/storage'
import { eventually, testDatabase } from '@rouse/testkit'
import type pg from 'pg'
import { type Test, test } from 'tap'

const collationMigration = '0012_collation.sql'
/** The test applies this migration last, under this name: the functions need the migrations after 0012. */
const lastMigration = '9999_collation.sql'

/** Indexes whose order an upgrade of the C library or of ICU may change. */
const fragileIndexes = `
  select distinct i.indexrelid::regclass::text as name
  from pg_index i join pg_class c on c.oid = i.indexrelid, unnest(i.indcollation) o
  where c.relnamespace = 'rouse'::regnamespace and o not in (0, 'pg_catalog."C"'::regcollation)
  order by 1`

test('no index depends on a collation of the operating system', async (t) => {
  const { pool } = await testDatabase(t, { instrumented: false })
  const { rows } = await pool.query(fragileIndexes)
  t.same(rows, [])
})

test('the collation changes under traffic, beside an open transaction of a producer, and fails no call', async (t) => {
  const { pool, url, directory } = await databaseBefore(t)
  t.ok((await pool.query(fragileIndexes)).rows.length > 0, 'it was not migrated yet')
  const traffic = startTraffic(t, pool)
  await eventually(() => traffic.consumed() > 20, { timeoutMs: 20_000 })

  const user = await pool.connect()
  t.teardown(() => user.release(true))
  await user.query('begin')
  await enqueue(user, { queue: 'q', partition: 'enqueued', payload: '1' })
  cpSync(join(migrationsDirectory, collationMigration), join(directory, lastMigration))
  const migrating = migrate({ url, directory })
  // Wait until the migration has tried to lock the tables that the user's transaction uses. It keeps trying.
  await untilTried(pool)
  const before = traffic.consumed()
  await eventually(() => traffic.consumed() > before + 20, { timeoutMs: 20_000 })
  t.ok((await pool.query(fragileIndexes)).rows.length > 0, 'the user is not done')
  await user.query('commit')

  t.same((await migrating).applied, [lastMigration])
  const after = traffic.consumed()
  await eventually(() => traffic.consumed() > after + 20, { timeoutMs: 20_000 })
  await traffic.stop()
  t.same(traffic.errors, [])
  t.same((await pool.query(fragileIndexes)).rows, [])
})

/** A database with every migration except the one under test. */
async function databaseBefore(t: Test): Promise<{ pool: pg.Pool; url: string; directory: string }> {
  const { pool, url } = await testDatabase(t, { instrumented: false, poolMax: 20 })
  await pool.query('drop schema rouse cascade')
  const directory = mkdtempSync(join(tmpdir(), 'rouse-before-collation-'))
  t.teardown(() => rmSync(directory, { recursive: true, force: true }))
  cpSync(migrationsDirectory, directory, {
    recursive: true,
    filter: (path) => !path.endsWith(collationMigration),
  })
  await migrate({ url, directory })
  return { pool, url, directory }
}

async function untilTried(pool: pg.Pool): Promise<void> {
  await eventually(async () => {
    const { rows } = await pool.query(
      `select from pg_stat_activity
       where datname = current_database() and application_name = 'rouse migrate' and wait_event = 'PgSleep'`,
    )
    return rows.length > 0
  })
}

/** Starts concurrent calls that use the tables in different orders. */
function startTraffic(t: Test, pool: pg.Pool) {
  const errors: unknown[] = []
  let consumed = 0
  let isStopped = false
  async function repeat(call: () => Promise<unknown>): Promise<void> {
    while (!isStopped) {
      try {
        await call()
      } catch (error) {
        // 55P03 is a lock timeout. Nodes repeat such a call.
        if ((error as { code?: string }).code === '55P03') continue
        errors.push(error)
        return
      }
    }
  }
  const item = (partition: string) => ({
    queue: 'q',
    partition,
    id: randomUUID(),
    payload: '1',
    transactionId: randomUUID(),
  })
  const done = Promise.all([
    repeat(() => push(pool, [item('a'), item('b')])),
    repeat(() => push(pool, [{ ...item('a'), delayMs: 1 }])),
    repeat(() => enqueue(pool, { queue: 'q', partition: 'c', payload: '1' })),
    repeat(() => promoteDue(pool)),
    repeat(async () => {
      const demands = [{ batch: 10, partitions: 2, holder: 'test' }]
      const { leases } = await pop(pool, { source: { queue: 'q' }, group: 'g', demands })
      if (leases.length === 0) return
      await ack(
        pool,
        leases.map(({ leaseId }) => ({ leaseId })),
      )
      consumed += leases.length
    }),
  ])
  async function stop(): Promise<void> {
    isStopped = true
    await done
  }
  t.teardown(stop)
  return { errors, stop, consumed: () => consumed }
}
