import { createPool } from '@rouse/database'
import { eventually, testDatabase } from '@rouse/testkit'
import { test } from 'tap'
import { sharedNode } from './support/node.ts'
import { rouse } from './support/rouse.ts'

const timeout = 60_000

test('adopt-copy starts the schedules of a copy, and the doctor reports it until then', {
  timeout,
}, async (t) => {
  const node = await sharedNode()
  const { url } = node.database
  const env = { ROUSE_DATABASE_URL: url, ROUSE_URL: node.url }
  await node.call('PUT', '/api/v1/schedules/nightly', { queue: 'reports', cron: '0 3 * * *' })
  const copies = async () =>
    (
      JSON.parse((await rouse(['doctor'], { env })).out) as { check: string; state: string }[]
    ).filter(({ check }) => check === 'copy')
  t.match(await copies(), [{ state: 'ok', what: /not a restored copy/ }])
  t.match(JSON.parse((await rouse(['adopt-copy'], { env })).out), { copyOf: null, clusterId: null })

  const pool = createPool({ url, max: 1, applicationName: 'rouse test' })
  t.teardown(() => pool.end())
  await pool.query(`update rouse.cluster set database_name = 'original'`)
  t.match(await copies(), [
    {
      state: 'warning',
      what: /^this database is a copy of database "original" on server/,
      fix: /adopt-copy/,
    },
  ])
  const dry = JSON.parse((await rouse(['adopt-copy', '--dry-run'], { env })).out)
  t.match(dry, { dryRun: true, copyOf: { database: 'original' }, schedules: ['nightly'] })
  t.equal((await copies()).length, 1)
  t.match(JSON.parse((await rouse(['adopt-copy'], { env })).out), {
    dryRun: false,
    copyOf: { database: 'original' },
    clusterId: /^[0-9a-f-]{36}$/,
    schedules: ['nightly'],
    redrives: 0,
  })
  // Nodes notice it in their next round.
  await eventually(async () => (await copies()).every(({ state }) => state === 'ok'), {
    timeoutMs: 30_000,
  })
})

test('adopt-copy needs the address of a database with the schema of this version', {
  timeout,
}, async (t) => {
  t.match(await rouse(['adopt-copy']), { code: 1, err: /ROUSE_DATABASE_URL/ })
  const { url, pool } = await testDatabase(t, { instrumented: false })
  await pool.query('drop schema rouse cascade')
  const env = { ROUSE_DATABASE_URL: url }
  t.match(await rouse(['adopt-copy'], { env }), {
    code: 2,
    err: /the copy was not adopted: .*rouse/,
  })
})
