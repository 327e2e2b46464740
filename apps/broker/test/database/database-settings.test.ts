import { test } from 'tap'
import { answersWith, hostileCases } from '../support/hostile-settings.ts'

const options = { timeout: 280_000 }

test('a node answers the same on a database with hostile settings', options, async (t) => {
  const wanted = await answersWith(t, 'direct', [])
  t.jobs = 3
  const cases = hostileCases
  await Promise.all(
    cases.map((settings) =>
      t.test(settings.join(' and '), { ...options, buffered: true }, async (t) => {
        t.same(await answersWith(t, 'direct', settings), wanted)
      }),
    ),
  )
})
