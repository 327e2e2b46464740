import { test } from 'tap'
import { longestAbove, type Timed, windowMedians } from './slow-windows.ts'

const windows = { from: 0, until: 2_000, windowMs: 250 }

/** One request every 50 ms, each taking `tookMs`. */
const steady = (from: number, until: number, tookMs: number): Timed[] =>
  Array.from({ length: (until - from) / 50 }, (_, i) => ({
    start: from + 50 * i,
    end: from + 50 * i + tookMs,
  }))

test('single slow requests do not make a window slow', (t) => {
  const timed = [...steady(0, 2_000, 4), { start: 300, end: 340 }, { start: 900, end: 940 }]
  t.equal(longestAbove(windowMedians(timed, windows), 8, 250), 0)
  t.end()
})

test('only consecutive slow windows are added up', (t) => {
  const timed = [
    ...steady(0, 250, 20),
    ...steady(250, 750, 4),
    ...steady(750, 1_250, 20),
    ...steady(1_250, 2_000, 4),
  ]
  t.equal(longestAbove(windowMedians(timed, windows), 8, 250), 500)
  t.end()
})

test('a request without a response makes every window slow in which it waits', (t) => {
  const timed = [...steady(0, 500, 4), { start: 510, end: 1_740 }, ...steady(1_750, 2_000, 4)]
  t.equal(longestAbove(windowMedians(timed, windows), 8, 250), 1_250)
  t.end()
})
