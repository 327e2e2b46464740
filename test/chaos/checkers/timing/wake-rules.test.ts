import { test } from 'tap'
import { Story } from '../../support/story.ts'
import { delays } from './delays.ts'
import { lateWakes } from './late-wakes.ts'

test('delays: never early', async (t) => {
  const told = (at: number): Story => {
    const story = new Story().push('a', { at: 100, delayMs: 1_000 })
    story.pop('a', { at })
    return story
  }
  t.equal(delays(told(1_100).history()).count, 0)
  t.equal(delays(told(1_000).history()).count, 1)
})

test('delays: they count from the first push that may have stored it', async (t) => {
  const story = new Story()
    .push('a', { at: 0, delayMs: 1_000, outcome: 'unknown' })
    .push('a', { at: 500, delayMs: 1_000 })
  story.pop('a', { at: 1_000 })
  t.equal(delays(story.history()).count, 0)
})

function woken(came: number, waiter: { at: number; took: number }): Story {
  const story = new Story().queue({ ordering: 'none', wakeMsMax: 1_000 }).push('a', { at: 5_000 })
  story.pop([], { ...waiter, waitMs: waiter.took })
  story.pop('a', { at: came, took: 10 })
  return story
}

test('wakes: late only if somebody stood waiting all the time', async (t) => {
  t.equal(lateWakes(woken(5_500, { at: 4_000, took: 1_400 }).history()).count, 0, 'in time')
  t.equal(lateWakes(woken(7_500, { at: 4_000, took: 2_000 }).history()).count, 0, 'nobody waited')
  t.equal(lateWakes(woken(7_500, { at: 4_000, took: 3_000 }).history()).count, 1)
  t.equal(
    lateWakes(woken(9_500, { at: 6_000, took: 2_000 }).history()).count,
    1,
    'came later, got nothing',
  )
})

test('wakes: the waiter that is woken late at last counts', async (t) => {
  const story = new Story().queue({ ordering: 'none', wakeMsMax: 1_000 }).push('a', { at: 5_000 })
  story.pop('a', { at: 4_000, took: 4_000, waitMs: 10_000 })
  t.equal(lateWakes(story.history()).count, 1)
})

test('wakes: faults, and what follows them, are excused', async (t) => {
  const story = woken(7_500, { at: 4_000, took: 3_000 }).fault(1_000, 3_000)
  t.equal(lateWakes(story.history()).count, 0)
})
