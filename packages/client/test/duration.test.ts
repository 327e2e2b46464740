import { test } from 'tap'
import { type Duration, parseDuration } from '../src/duration.ts'

test('a duration is a number of milliseconds or a number with a unit', async (t) => {
  const cases: [Duration, number][] = [
    [0, 0],
    [1_500, 1_500],
    ['250ms', 250],
    ['30s', 30_000],
    ['10m', 600_000],
    ['1.5h', 5_400_000],
    ['1d', 86_400_000],
  ]
  for (const [duration, ms] of cases) t.equal(parseDuration(duration, 'delay'), ms)
})

test('an invalid duration is refused with the name of its field', async (t) => {
  for (const text of ['', '10', '10 m', 'm', '-1s', '10M', Number.NaN, -1, Infinity]) {
    t.throws(() => parseDuration(text as Duration, 'delay'), {
      code: 'invalid_delay',
      message: /^delay /,
    })
  }
})
