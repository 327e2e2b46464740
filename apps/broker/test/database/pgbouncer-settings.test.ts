import { pgbouncerMissing } from '@rouse/testkit'
import { test } from 'tap'
import { answersWith, hostileCases } from '../support/hostile-settings.ts'

const options = { skip: pgbouncerMissing, timeout: 280_000 }

test(
  'a node behind pgbouncer answers the same on a database with hostile settings',
  options,
  async (t) => {
    const wanted = await answersWith(t, 'direct', [])
    t.jobs = 3
    const cases = hostileCases
    await Promise.all(
      cases.map((settings) =>
        t.test(settings.join(' and '), { ...options, buffered: true }, async (t) => {
          t.same(await answersWith(t, 'pgbouncer', settings), wanted)
        }),
      ),
    )
  },
)
