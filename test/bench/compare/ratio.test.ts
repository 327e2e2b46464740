import { test } from 'tap'
import { median, ratioOf } from './ratio.ts'

const rounds = (...cpu: number[]) => cpu.map((cpuMicros) => ({ cpuMicros }))

test('the ratio is the median of the ratios of the rounds', async (t) => {
  // The machine became twice as slow after the third round; both builds saw it.
  const ours = rounds(90, 90, 90, 180, 180, 180)
  const theirs = rounds(100, 100, 100, 200, 200, 200)
  t.same(ratioOf(ours, theirs), { ratio: 0.9, spread: 0 })
})

test('the spread is that of the median, so that more rounds make it smaller', async (t) => {
  const few = ratioOf(rounds(90, 95, 100, 105, 110), rounds(100, 100, 100, 100, 100))
  t.equal(few.ratio, 1)
  t.equal(few.spread.toFixed(3), '0.070')
  const cpu = Array.from({ length: 20 }, (_, i) => [90, 95, 100, 105, 110][i % 5] as number)
  const many = ratioOf(rounds(...cpu), rounds(...cpu.map(() => 100)))
  t.equal(many.ratio, 1)
  t.equal(many.spread.toFixed(3), '0.035')
})

test('the median of an even number of values is between the middle two', async (t) => {
  t.equal(median([4, 1, 3, 2]), 2.5)
})
