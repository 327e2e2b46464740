import { test } from 'tap'
import { median, ratioOf } from './ratio.ts'

const rounds = (...cpu: number[]) => cpu.map((cpuMicros) => ({ cpuMicros, perSecond: 1 }))

test('the ratio is the median of the ratios of the rounds', async (t) => {
  // The machine became twice as slow after the third round; both builds saw it.
  const ours = rounds(90, 90, 90, 180, 180, 180)
  const theirs = rounds(100, 100, 100, 200, 200, 200)
  t.same(ratioOf(ours, theirs), { ratio: 0.9, spread: 0 })
})

test('the spread is half the distance between the quartiles', async (t) => {
  const { ratio, spread } = ratioOf(rounds(90, 95, 100, 105, 110), rounds(100, 100, 100, 100, 100))
  t.equal(ratio, 1)
  t.equal(spread.toFixed(3), '0.050')
})

test('the median of an even number of values is between the middle two', async (t) => {
  t.equal(median([4, 1, 3, 2]), 2.5)
})
