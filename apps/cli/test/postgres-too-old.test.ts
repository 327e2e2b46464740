// PostgreSQL 14 is rejected at the start with an error code, and nothing is written to it.
import { createPool } from '@rouse/database'
import { postgresMissing, startTestPostgres, testServerSettings } from '@rouse/testkit'
import { test } from 'tap'
import { rouse } from './support/rouse.ts'

const tooOld = /PostgreSQL 14\.\d+ is too old: Rouse needs 15 or newer \(postgres_too_old\)/

test('a server older than PostgreSQL 15 is rejected', { skip: postgresMissing(14) }, async (t) => {
  const server = await startTestPostgres({ major: 14, settings: testServerSettings })
  t.teardown(() => server.stop())
  const env = { ROUSE_DATABASE_URL: server.url }

  for (const flags of [[], ['--dry-run']]) {
    await t.test(['by rouse migrate', ...flags].join(' '), async (t) => {
      const { code, err } = await rouse(['migrate', ...flags], { env })
      t.match(err, tooOld)
      t.equal(code, 2)
    })
  }

  await t.test('by rouse doctor', async (t) => {
    const { code, out } = await rouse(['doctor', '--url', 'http://127.0.0.1:9'], { env })
    const findings = JSON.parse(out) as { check: string }[]
    t.match(
      findings.find(({ check }) => check === 'version'),
      { state: 'problem', code: 'postgres_too_old', what: tooOld },
    )
    t.notOk(
      findings.some(({ check }) => check === 'schema'),
      'the other checks are skipped',
    )
    t.equal(code, 5)
  })

  for (const migrate of ['auto', 'check', 'off']) {
    await t.test(`by rouse serve with ROUSE_MIGRATE=${migrate}`, async (t) => {
      const flags = ['--port=0', '--gossip-port=0', `--migrate=${migrate}`]
      const { code, out } = await rouse(['serve', ...flags], { env })
      const last = JSON.parse(out.trim().split('\n').at(-1) ?? '{}')
      t.match(last, { level: 'fatal', err: { code: 'postgres_too_old', message: tooOld } })
      t.equal(code, 1)
    })
  }

  const pool = createPool({ url: server.url, max: 1, applicationName: 'test' })
  t.teardown(() => pool.end())
  const { rows } = await pool.query(`select to_regnamespace('rouse') as found`)
  t.same(rows, [{ found: null }])
})
