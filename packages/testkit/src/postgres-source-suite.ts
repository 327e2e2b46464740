import { createPool } from '@rouse/database'
import type { Test } from 'tap'
import type { PostgresSource } from './postgres-source.ts'
import { majorUnderTest } from './test-postgres.ts'

/** The contract of every source of PostgreSQL. */
export async function postgresSourceSuite(t: Test, create: () => PostgresSource): Promise<void> {
  const source = create()
  t.teardown(() => source.stop())
  const url = await source.start()
  const pool = createPool({ url, max: 2, applicationName: 'rouse postgres source suite' })
  t.teardown(() => pool.end())

  await t.test('it is the PostgreSQL under test', async (t) => {
    const { rows } = await pool.query(
      `select current_setting('server_version_num')::int / 10000 as major`,
    )
    t.equal(rows[0].major, majorUnderTest())
  })

  await t.test('its user can create and drop databases', async (t) => {
    await pool.query('create database rouse_source_suite')
    await pool.query('drop database rouse_source_suite with (force)')
    t.pass('created and dropped')
  })

  await t.test('it accepts a hundred connections', async (t) => {
    const { rows } = await pool.query(`select current_setting('max_connections')::int as max`)
    t.ok(rows[0].max >= 100)
  })

  await t.test('a second start returns the same address', async (t) => {
    t.equal(await source.start(), url)
  })
}
