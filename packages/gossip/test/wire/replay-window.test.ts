import fc from 'fast-check'
import { test } from 'tap'
import { ReplayWindow } from '../../src/wire/replay-window.ts'

test('each number is accepted once, in any order', async () => {
  const series = fc
    .record({
      from: fc.nat(2 ** 40),
      gaps: fc.array(fc.integer({ min: 1, max: 8 }), { maxLength: 120 }),
    })
    .chain(({ from, gaps }) => {
      let number = from
      const numbers = gaps.map((gap) => {
        number += gap
        return number
      })
      return fc.shuffledSubarray([...numbers, ...numbers], { minLength: numbers.length * 2 })
    })
  fc.assert(
    fc.property(series, (numbers) => {
      const window = new ReplayWindow()
      const seen = new Set<number>()
      for (const number of numbers) {
        if (window.accept(number) === seen.has(number)) throw new Error(`${number}`)
        seen.add(number)
      }
    }),
  )
})

test('the window agrees with a full list of received numbers, within its size', async () => {
  fc.assert(
    fc.property(fc.array(fc.nat(5_000), { maxLength: 200 }), fc.nat(5_000), (numbers, mark) => {
      const window = new ReplayWindow()
      const seen = new Set<number>()
      let highest = -1
      for (const number of numbers) {
        const isNew = !seen.has(number) && number > highest - 1_024
        if (window.accept(number) !== isNew) throw new Error(`${number}`)
        if (isNew) seen.add(number)
        highest = Math.max(highest, number)
      }
      const above = [...seen].filter((one) => one > mark && one > highest - 1_024).length
      if (window.countAbove(mark) !== above) throw new Error(`${window.countAbove(mark)} ${above}`)
    }),
    { numRuns: 500 },
  )
})

test('a window that starts later accepts nothing from before', async (t) => {
  const window = new ReplayWindow()
  window.startAfter(5_000)
  for (let number = 0; number <= 5_000; number += 1) {
    if (window.accept(number)) t.fail(`${number}`)
  }
  t.ok(window.accept(5_002))
  t.ok(window.accept(5_001))
  t.notOk(window.accept(5_001))
})
