import { test } from 'tap'
import { seededRandom } from '../src/index.ts'

function numbers(seed: number): number[] {
  const random = seededRandom(seed)
  return Array.from({ length: 1_000 }, () => random.next())
}

test('the same seed gives the same numbers', async (t) => {
  t.same(numbers(7), numbers(7))
  t.notSame(numbers(7), numbers(8))
})

test('numbers are spread between 0 and 1', async (t) => {
  const drawn = numbers(1)
  t.ok(drawn.every((number) => number >= 0 && number < 1))
  const mean = drawn.reduce((sum, number) => sum + number, 0) / drawn.length
  t.ok(Math.abs(mean - 0.5) < 0.05, `mean ${mean}`)
})

test('below and pick stay within their limits', async (t) => {
  const random = seededRandom(3)
  const drawn = new Set(Array.from({ length: 200 }, () => random.below(3)))
  t.same(drawn, new Set([0, 1, 2]))
  t.ok(['a', 'b'].includes(random.pick(['a', 'b'])))
  t.throws(() => random.pick([]), RangeError)
})
