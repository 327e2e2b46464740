import { pgbouncerMissing, startPgbouncer, testDatabase } from '@rouse/testkit'
import { test } from 'tap'
import { rouse } from './support/rouse.ts'

const options = { skip: pgbouncerMissing, timeout: 60_000 }

test('the doctor knows a pooler, and whether nodes would LISTEN through it', options, async (t) => {
  const { url } = await testDatabase(t, { instrumented: false })
  const pgbouncer = await startPgbouncer(url)
  t.teardown(() => pgbouncer.stop())
  const through = { ROUSE_DATABASE_URL: pgbouncer.through(url) }
  for (const [env, pooler, listen] of [
    [{ ROUSE_DATABASE_URL: url }, /^no pooler/, 'ok'],
    [through, /^a pooler is in between/, 'warning'],
    [{ ...through, ROUSE_LISTEN_URL: url }, /^a pooler is in between/, 'ok'],
  ] as const) {
    // No node is there, which is a finding of its own.
    const { out } = await rouse(['doctor', '--url', 'http://127.0.0.1:9'], { env })
    const findings = JSON.parse(out) as { check: string; state: string; what: string }[]
    t.match(
      findings.find(({ check }) => check === 'pooler'),
      { state: 'ok', what: pooler },
    )
    t.match(
      findings.find(({ check }) => check === 'listen'),
      { state: listen },
    )
  }
})
